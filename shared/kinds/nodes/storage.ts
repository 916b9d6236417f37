/**
 * The storage of Nodes: objects, with the heartbeat times of their rows in `health` (node-digest.ts).
 *
 * A status post of a healthy node that changes only these times costs one write unit, on its row. Decision 0008
 * explains why no acknowledged write is lost.
 */
import type { KindStorage } from '../../api/kind-storage.ts';
import type { ResourceStorage, WriteResult } from '../../api/resource-storage.ts';
import type { Clock } from '../../clock.ts';
import { nodeHealthWrites } from '../../fleet/nodes/change-node.ts';
import { readyStatusOf } from '../../fleet/nodes/conditions.ts';
import type { HeartbeatTimes } from '../../fleet/nodes/health.ts';
import { heartbeatTimesOf } from '../../fleet/nodes/health.ts';
import { confirmStatus, readHeartbeatTimes, statusReceived } from '../../fleet/nodes/health-store.ts';
import { movedTimes, shownNode, storedNode, withProfile, withSilenceMarks } from '../../fleet/nodes/node-digest.ts';
import type { Policy } from '../../fleet/policy.ts';
import { NAME_LENGTH_MAX } from '../../kubernetes/kubernetes.ts';
import type { ItemStore } from '../../store/item-store.ts';
import { healthKey } from '../../store/layout.ts';
import { objectOf } from '../../store/object-record.ts';
import { objectKey } from '../../store/object-store.ts';
import { shardsOf } from '../resources.ts';
import type { KubeNode, KubeObject } from '../types.ts';
import { nodes } from './serve.ts';

/**
 * The object is written at least this often. Seconds. Watches report only writes of the object. Each one also makes a
 * new stream record, which repeats the work of a lost record.
 */
const OBJECT_WRITE_AFTER_SECONDS = 86_400;
/** How long a process remembers that the table `health` is larger than a Scan page. Milliseconds. */
const LARGE_TABLE_MS = 600_000;
/** Taints that controllers of ours and cloud controllers set. A controller waits for the next change of such a Node. */
const TAINTS_OF_CONTROLLERS = /^node\.(cloudprovider\.)?kubernetes\.io\//;

export interface NodeStorageOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  /** True: a Node without pod CIDRs is not steady, because each write of the object repeats the allocation. */
  readonly allocatesPodCidrs: boolean;
  /** Each write of a Node stores the profile that its labels select. */
  readonly profiles: Policy['profiles'];
}

export function nodeStorage(objects: ResourceStorage, options: NodeStorageOptions): ResourceStorage {
  const { items, clock } = options;
  /** The stored Node, by the Node that a read returned with the heartbeat times of its row. */
  const storedOf = new WeakMap<KubeObject, KubeNode>();
  let largeUntilMs = 0;
  const readOf = (shown: KubeNode) => ({ shown, stored: storedOf.get(shown) ?? shown });

  function show(node: KubeNode, times: HeartbeatTimes | undefined): KubeNode {
    const shown = shownNode(node, times);
    if (shown !== node) storedOf.set(shown, node);
    return shown;
  }

  async function shownAll(nodes: readonly KubeObject[], consistent: boolean): Promise<readonly KubeObject[]> {
    const names = nodes.map(({ metadata }) => metadata.name ?? '');
    const nowMs = clock.nowMs();
    const times = await readHeartbeatTimes(items, names, {
      consistent,
      triesScan: nowMs >= largeUntilMs,
      onLarge() {
        largeUntilMs = nowMs + LARGE_TABLE_MS;
      },
    });
    return nodes.map((node, index) => show(node, times.get(names[index]!)));
  }

  /** True when no controller waits for a change of this Node. The condition of the row write checks the rest. */
  function isSteady({ metadata, spec, status }: KubeNode): boolean {
    return (
      metadata.deletionTimestamp === undefined &&
      readyStatusOf(status?.conditions) === 'True' &&
      !(spec?.taints ?? []).some(({ key }) => TAINTS_OF_CONTROLLERS.test(key)) &&
      (!options.allocatesPodCidrs || (spec?.podCIDRs ?? []).length > 0)
    );
  }

  /** With its profile, and with the marks of a planned silence: both follow from labels and annotations. */
  const completed = (node: KubeObject): KubeObject =>
    withSilenceMarks(withProfile(node as KubeNode, options.profiles), clock.nowMs());

  return {
    ...objects,
    create: (node, along) => objects.create(completed(node), along),
    async get(_namespace, name) {
      // It may come from a body, and be longer than a key of the store.
      if (name.length > NAME_LENGTH_MAX) return undefined;
      // One request for both: requests to the tables are most of the CPU time of a small API request.
      const key = objectKey({ resource: 'nodes', namespace: '', name }, shardsOf('nodes'));
      const [item, row] = await items.getMany([key, healthKey(name)], { consistent: true });
      if (item === undefined) return undefined;
      return show(objectOf(item) as KubeNode, row === undefined ? undefined : heartbeatTimesOf(row));
    },
    async list(query) {
      const page = await objects.list(query);
      return { ...page, items: await shownAll(page.items, false) };
    },
    async update(next, old, along) {
      const read = readOf(old);
      const stored = storedNode(next, read);
      const full = completed(stored) as KubeNode;
      const result = await objects.update(full, read.stored, along);
      // The answer has the times that were sent, unless this write added a condition.
      if (result.kind !== 'written' || next.status === undefined || full.status !== stored.status) return result;
      return { kind: 'written', object: { ...result.object, status: next.status } };
    },
    async received({ metadata: { name = '', uid = '' } }) {
      await items.write(statusReceived(name, { uid, nowMs: clock.nowMs() }));
    },
    async confirm(node: KubeNode, old): Promise<WriteResult | undefined> {
      const read = readOf(old);
      const times = isSteady(node) ? movedTimes(node, read) : undefined;
      if (times === undefined || times.toSeconds - times.fromSeconds >= OBJECT_WRITE_AFTER_SECONDS) return undefined;
      const { name = '', uid = '' } = node.metadata;
      const outcome = await items.write(confirmStatus(name, { uid, times, nowMs: clock.nowMs() }));
      return outcome.kind === 'written' ? { kind: 'written', object: node } : undefined;
    },
  };
}

export const nodeStorages: readonly KindStorage[] = [
  [
    nodes,
    (descriptor, { plain, items, clock, policy }) =>
      // The digest in the `health` table changes in the transaction that writes its Node.
      nodeStorage(plain(descriptor, { together: (write) => nodeHealthWrites(write, clock.nowMs()) }), {
        items,
        clock,
        allocatesPodCidrs: policy.clusterCIDRs.length > 0,
        profiles: policy.profiles,
      }),
  ],
];
