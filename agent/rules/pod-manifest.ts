/**
 * Pods as people write them in files, read as the API would store them: checked, with its defaults and with the
 * priority of their class. The node sees stored pods only, so a plan for the file itself would be a different one.
 * Kubernetes: "Pod Priority and Preemption", "Pod Quality of Service Classes".
 */

import { pods as podKind } from '../../shared/api/kinds/pods.ts';
import { priorityclasses, systemPriorityClasses } from '../../shared/api/kinds/priorityclasses.ts';
import { isRecord, type Json } from '../../shared/kube/normal-form.ts';
import {
  defaultPriorityClass,
  type PriorityClasses,
  priorityClassNameOf,
  resolvePriority,
} from '../../shared/kube/pods/pod-priority.ts';
import { parseQuantity } from '../../shared/kube/quantity.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { ConfigDocument, ConfigFault } from './config-settings.ts';

type Path = readonly (string | number)[];

export interface ReadPods {
  /** As the API stores them. A pod with a uid was read from the API and stays unchanged. */
  readonly pods: readonly KubeObject[];
  readonly faults: readonly ConfigFault[];
}

const INT32 = 2 ** 31;

/** `spec.containers[0].name` */
const fieldName = (path: Path): string =>
  path.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${step}`)).join('');

/** Kinds of lists, each with the kind of its items where these need not name it. */
const LISTS: ReadonlyMap<string, string> = new Map([
  ['List', ''],
  ['PodList', 'Pod'],
  ['PriorityClassList', 'PriorityClass'],
]);

/** Tolerations and timestamps are of no interest to a plan, so any time will do. */
const PREPARE = { nowMs: 0 };

const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 100) ?? 'nothing';

/** Each document is a Pod, a PriorityClass, or a List of them. The classes may come after the pods that name them. */
export function podsOf(documents: readonly ConfigDocument[]): ReadPods {
  const checked: { readonly pod: KubeObject; readonly at: ConfigDocument['at']; readonly path: Path }[] = [];
  const classes = new Map(systemPriorityClasses().map((each) => [each.metadata.name ?? '', each]));
  const faults: ConfigFault[] = [];

  for (const { value: document, at } of documents) {
    const fault = (path: Path, expected: string, value: unknown): void => {
      const field = fieldName(path);
      faults.push({
        field,
        at: at(path),
        message: `${field || 'document'}: expected ${expected}, found ${shown(value)}`,
      });
    };

    const checkAmounts = (path: Path, amounts: unknown): void => {
      if (amounts === undefined || amounts === null) return;
      if (!isRecord(amounts)) fault(path, 'quantities by resource', amounts);
      else
        for (const [name, amount] of Object.entries(amounts)) {
          const parsed =
            typeof amount === 'string' || typeof amount === 'number' ? parseQuantity(String(amount)) : undefined;
          if (parsed?.kind !== 'parsed' || parsed.quantity.nanos < 0n) {
            fault([...path, name], 'a quantity such as 500m or 1Gi, not negative', amount);
          }
        }
    };
    const checkResources = (path: Path, resources: unknown): void => {
      if (resources === undefined || resources === null) return;
      if (!isRecord(resources)) fault(path, 'requests and limits', resources);
      else {
        checkAmounts([...path, 'requests'], resources['requests']);
        checkAmounts([...path, 'limits'], resources['limits']);
      }
    };
    const checkContainers = (path: Path, containers: unknown, needed: boolean): void => {
      if (!needed && (containers === undefined || containers === null)) return;
      if (!Array.isArray(containers) || (needed && containers.length === 0)) {
        fault(path, 'a list of containers', containers);
        return;
      }
      const names = new Set<unknown>();
      for (const [index, container] of containers.entries()) {
        const name = isRecord(container) ? container['name'] : undefined;
        if (typeof name !== 'string' || name === '' || names.has(name)) {
          fault([...path, index, 'name'], 'a name that no other container has', name);
        }
        names.add(name);
        if (isRecord(container)) checkResources([...path, index, 'resources'], container['resources']);
      }
    };
    const checkNumber = (path: Path, value: unknown, least: number, expected: string): void => {
      if (value === undefined || value === null) return;
      if (!Number.isInteger(value) || Number(value) < least || Number(value) >= INT32) fault(path, expected, value);
    };

    const readPod = (path: Path, pod: Json): void => {
      const before = faults.length;
      const metadata = pod['metadata'];
      const name = isRecord(metadata) ? metadata['name'] : undefined;
      if (typeof name !== 'string' || name === '') fault([...path, 'metadata', 'name'], 'the name of the pod', name);
      const spec = pod['spec'];
      if (!isRecord(spec)) fault([...path, 'spec'], 'the spec of a pod', spec);
      else {
        const own = [...path, 'spec'];
        checkContainers([...own, 'containers'], spec['containers'], true);
        checkContainers([...own, 'initContainers'], spec['initContainers'], false);
        checkResources([...own, 'resources'], spec['resources']);
        checkNumber([...own, 'priority'], spec['priority'], -INT32, 'a whole number of 32 bits');
        const grace = 'terminationGracePeriodSeconds';
        checkNumber([...own, grace], spec[grace], 0, 'a whole number of seconds, not negative');
      }
      if (faults.length === before) checked.push({ pod: pod as unknown as KubeObject, at, path });
    };

    const readClass = (path: Path, value: Json): void => {
      const metadata = isRecord(value['metadata']) ? value['metadata'] : {};
      if (typeof value['value'] !== 'number') fault([...path, 'value'], 'the priority of the class', value['value']);
      else {
        const prepared = priorityclasses.prepareForCreate({ ...value, metadata }, PREPARE);
        const causes = priorityclasses.validate(prepared, { operation: 'create', subresource: '' });
        for (const { field = '', message } of causes) {
          const own = [...path, ...field.split('.')];
          faults.push({ field: fieldName(own), at: at(own), message: `${fieldName(own)}: ${message}` });
        }
        if (causes.length === 0) classes.set(prepared.metadata.name ?? '', prepared);
      }
    };

    const read = (path: Path, value: unknown): void => {
      if (isRecord(value) && value['kind'] === 'Pod') readPod(path, value);
      else if (isRecord(value) && value['kind'] === 'PriorityClass') readClass(path, value);
      else fault([...path, 'kind'], 'Pod, PriorityClass, or a List of them', isRecord(value) ? value['kind'] : value);
    };

    // Between two separators there may be nothing.
    if (document === null || document === undefined) continue;
    const kindOfItems = isRecord(document) ? LISTS.get(String(document['kind'])) : undefined;
    if (!isRecord(document) || kindOfItems === undefined) read([], document);
    else if (!Array.isArray(document['items'])) fault(['items'], 'a list of pods', document['items']);
    else {
      const kind = kindOfItems === '' ? {} : { kind: kindOfItems };
      for (const [index, item] of document['items'].entries()) {
        read(['items', index], isRecord(item) ? { ...kind, ...item } : item);
      }
    }
  }
  const pods: KubeObject[] = [];
  for (const { pod, at, path } of checked) {
    const admitted = admit(pod, classes);
    if (admitted.kind === 'stored') pods.push(admitted.pod);
    else {
      const own = [...path, 'spec', admitted.field];
      faults.push({ field: fieldName(own), at: at(own), message: `${fieldName(own)}: ${admitted.why}` });
    }
  }
  return { pods, faults };
}

type Admitted =
  | { readonly kind: 'stored'; readonly pod: KubeObject }
  /** The API would answer 403. `field` of the spec. */
  | { readonly kind: 'refused'; readonly field: string; readonly why: string };

function admit(pod: KubeObject, classes: ReadonlyMap<string, KubeObject>): Admitted {
  if (pod.metadata.uid !== undefined) return { kind: 'stored', pod };
  const name = priorityClassNameOf(pod);
  const found: PriorityClasses =
    name === '' ? { globalDefault: defaultPriorityClass([...classes.values()]) } : { named: classes.get(name) };
  const outcome = resolvePriority(pod, found);
  if (outcome.kind === 'refused') {
    if (name !== '' && found.named === undefined) {
      const remedy = 'add that PriorityClass to the file, or use pods as the API returns them';
      return { kind: 'refused', field: 'priorityClassName', why: `${outcome.why}; ${remedy}` };
    }
    return { kind: 'refused', field: outcome.field, why: outcome.why };
  }
  return { kind: 'stored', pod: podKind.prepareForCreate(pod, { ...PREPARE, priority: outcome.priority }) };
}
