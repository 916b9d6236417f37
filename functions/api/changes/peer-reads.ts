/**
 * Pods and namespaces as an agent reads them that enforces NetworkPolicies: what selectors match, and addresses. A node
 * may not read whole pods of other nodes.
 *
 * Cost: as that of a whole resource. A list is read in pages of pods, whole ones, at the first read only.
 */
import type { ReadDependencies } from '../../../shared/api/call.ts';
import { defined } from '../../../shared/defined.ts';
import { namespaces, pods } from '../../../shared/kinds/registry.ts';
import type { KubeObject, KubePod } from '../../../shared/kinds/types.ts';
import type { ChangesOfResource, ResourceName } from '../../../shared/watches/change-read.ts';
import { readOne, type Spendable } from './read-changes.ts';
import type { SiteCursor } from './site-reads.ts';

const PAGE_OBJECTS = 500;
/** In place of the name of a set: there is only one. */
const BOUNDS = 'peers';

const metadataOf = ({ metadata: { name, namespace, uid, labels, resourceVersion, deletionTimestamp } }: KubeObject) =>
  defined({ name, namespace, uid, labels, resourceVersion, deletionTimestamp });

function podPart(pod: KubePod): KubeObject {
  const { nodeName, hostNetwork, containers = [], initContainers = [] } = pod.spec ?? {};
  const ports = [...initContainers, ...containers].flatMap((each) => each.ports ?? []).filter(({ name }) => name);
  return {
    metadata: metadataOf(pod),
    spec: { ...defined({ nodeName, hostNetwork }), containers: ports.length === 0 ? [] : [{ name: '', ports }] },
    status: defined({ phase: pod.status?.phase, podIP: pod.status?.podIP, podIPs: pod.status?.podIPs }),
  };
}

const PARTS: Readonly<Record<string, (object: KubeObject) => KubeObject>> = {
  pods: podPart,
  namespaces: (object) => ({ metadata: metadataOf(object) }),
};
const DESCRIPTORS = { pods, namespaces };

export const hasPeerPart = ({ group, resource }: ResourceName): boolean =>
  group === '' && Object.hasOwn(PARTS, resource);

/** One outcome in JSON. `room` becomes smaller. */
export async function readPeers(
  { storageOf, changes }: Pick<ReadDependencies, 'storageOf' | 'changes'>,
  { group, resource, after, from }: SiteCursor,
  { room, consistent }: { readonly room: Spendable; readonly consistent: boolean },
): Promise<string> {
  const partOf = PARTS[resource]!;
  const unchanged = (more: boolean): string =>
    JSON.stringify({
      ...{ group, resource, outcome: 'changes', through: String(after), more, changes: [], bounds: BOUNDS },
    } satisfies ChangesOfResource);
  if (from === undefined && after > 0) {
    const [isQuiet] = await changes.areQuiet([{ resource, after }], { consistent });
    if (isQuiet === true) return unchanged(false);
    if (room.changes <= 0 || room.bytes <= 0) return unchanged(true);
    return readOne(changes, { group, resource, after }, room, { partOf });
  }
  const through = String(await changes.currentVersion(resource));
  const query = { namespace: '', limit: PAGE_OBJECTS, ...defined({ continueAfter: from }) };
  const { items, next } = await storageOf(DESCRIPTORS[resource as keyof typeof DESCRIPTORS]).list(query);
  const objects = items.map(partOf);
  room.bytes -= Buffer.byteLength(JSON.stringify(objects));
  return JSON.stringify({
    ...{ group, resource, outcome: 'listed', through, bounds: BOUNDS, objects },
    ...defined({ next }),
  } satisfies ChangesOfResource);
}
