/** Pods as people write them in files: what of them has to be right before anything can be said about them. */
import { parseQuantity } from '../../shared/kube/quantity.ts';
import { isRecord, type Json } from '../../shared/kube/resources/normal-form.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { ConfigDocument, ConfigFault } from './config-settings.ts';

type Path = readonly (string | number)[];

export interface ReadPods {
  readonly pods: readonly KubeObject[];
  readonly faults: readonly ConfigFault[];
}

const INT32 = 2 ** 31;

/** `spec.containers[0].name` */
const fieldName = (path: Path): string =>
  path.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${step}`)).join('');

const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 100) ?? 'nothing';

/** A Pod, or a List or PodList of them, a document. */
export function podsOf(documents: readonly ConfigDocument[]): ReadPods {
  const pods: KubeObject[] = [];
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
      if (faults.length === before) pods.push(pod as unknown as KubeObject);
    };

    const read = (path: Path, value: unknown): void => {
      if (isRecord(value) && value['kind'] === 'Pod') readPod(path, value);
      else fault([...path, 'kind'], 'Pod, or a List of them', isRecord(value) ? value['kind'] : value);
    };

    // Between two separators there may be nothing.
    if (document === null || document === undefined) continue;
    if (!isRecord(document) || !['List', 'PodList'].includes(String(document['kind']))) read([], document);
    else if (!Array.isArray(document['items'])) fault(['items'], 'a list of pods', document['items']);
    else {
      // Items of a PodList need not say what they are.
      const kind = document['kind'] === 'PodList' ? { kind: 'Pod' } : {};
      for (const [index, item] of document['items'].entries()) {
        read(['items', index], isRecord(item) ? { ...kind, ...item } : item);
      }
    }
  }
  return { pods, faults };
}
