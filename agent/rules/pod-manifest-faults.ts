/** The checks of a pod in a file: those fields that the rules of the agent read. */
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import { isRecord, type Json, recordOf } from '../../shared/kubernetes/normal-form.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';

export type FieldPath = readonly (string | number)[];

export interface FieldFault {
  readonly path: FieldPath;
  readonly message: string;
}

const INT32 = 2 ** 31;

const describeValue = (value: unknown): string => JSON.stringify(value)?.slice(0, 100) ?? 'nothing';

export const unexpected = (path: FieldPath, expected: string, value: unknown): FieldFault => ({
  path,
  message: `expected ${expected}, found ${describeValue(value)}`,
});

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

/** Empty if the rules can read the pod. */
export function podFaults(path: FieldPath, pod: Json): readonly FieldFault[] {
  const { metadata, spec } = pod;
  const name = isRecord(metadata) ? metadata['name'] : undefined;
  return [
    ...(isName(name) ? [] : [unexpected([...path, 'metadata', 'name'], 'the name of the pod', name)]),
    ...offlineStopFaults([...path, 'metadata', 'annotations', OFFLINE_STOP_AFTER], metadata),
    ...(isRecord(spec)
      ? specFaults([...path, 'spec'], spec)
      : [unexpected([...path, 'spec'], 'the spec of a pod', spec)]),
  ];
}

/** A static pod would run on: the cluster cannot keep it from two machines. */
function offlineStopFaults(path: FieldPath, metadata: unknown): readonly FieldFault[] {
  const value = recordOf(recordOf(metadata)['annotations'])[OFFLINE_STOP_AFTER];
  return value === undefined ? [] : [unexpected(path, 'nothing: a static pod is never stopped for this', value)];
}

const isName = (value: unknown): boolean => typeof value === 'string' && value !== '';

function specFaults(path: FieldPath, spec: Json): readonly FieldFault[] {
  const { containers, initContainers, resources, priority, terminationGracePeriodSeconds } = spec;
  return [
    ...containerListFaults([...path, 'containers'], containers, true),
    ...containerListFaults([...path, 'initContainers'], initContainers, false),
    ...resourceFaults([...path, 'resources'], resources),
    ...integerFaults([...path, 'priority'], priority, -INT32, 'a whole number of 32 bits'),
    ...integerFaults(
      [...path, 'terminationGracePeriodSeconds'],
      terminationGracePeriodSeconds,
      0,
      'a whole number of seconds, not negative',
    ),
  ];
}

function containerListFaults(path: FieldPath, containers: unknown, isRequired: boolean): readonly FieldFault[] {
  if (!isRequired && isAbsent(containers)) return [];
  if (!Array.isArray(containers) || (isRequired && containers.length === 0)) {
    return [unexpected(path, 'a list of containers', containers)];
  }
  const names = new Set<unknown>();
  return containers.flatMap((container: unknown, index) => {
    const name = isRecord(container) ? container['name'] : undefined;
    const isUnique = isName(name) && !names.has(name);
    names.add(name);
    return [
      ...(isUnique ? [] : [unexpected([...path, index, 'name'], 'a name that no other container has', name)]),
      ...(isRecord(container) ? resourceFaults([...path, index, 'resources'], container['resources']) : []),
    ];
  });
}

function resourceFaults(path: FieldPath, resources: unknown): readonly FieldFault[] {
  if (isAbsent(resources)) return [];
  if (!isRecord(resources)) return [unexpected(path, 'requests and limits', resources)];
  return [
    ...quantityFaults([...path, 'requests'], resources['requests']),
    ...quantityFaults([...path, 'limits'], resources['limits']),
  ];
}

function quantityFaults(path: FieldPath, amounts: unknown): readonly FieldFault[] {
  if (isAbsent(amounts)) return [];
  if (!isRecord(amounts)) return [unexpected(path, 'quantities by resource', amounts)];
  return Object.entries(amounts)
    .filter(([, amount]) => !isQuantity(amount))
    .map(([name, amount]) => unexpected([...path, name], 'a quantity such as 500m or 1Gi, not negative', amount));
}

function isQuantity(amount: unknown): boolean {
  if (typeof amount !== 'string' && typeof amount !== 'number') return false;
  const parsed = parseQuantity(String(amount));
  return parsed.kind === 'parsed' && parsed.quantity.nanos >= 0n;
}

function integerFaults(path: FieldPath, value: unknown, minimum: number, expected: string): readonly FieldFault[] {
  if (isAbsent(value)) return [];
  const isValid = Number.isInteger(value) && Number(value) >= minimum && Number(value) < INT32;
  return isValid ? [] : [unexpected(path, expected, value)];
}
