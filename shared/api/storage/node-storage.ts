/**
 * Nodes as the verbs see them: objects, with the heartbeat times that their rows in `health` keep (heartbeat-times.ts).
 *
 * A status post of a healthy node that only moves those times is one write unit on its row. Why no acknowledged write is
 * lost: decision 0008.
 */
import { readyStatusOf } from '../../domain/nodes/conditions.ts';
import { type HeartbeatTimes, movedTimes, shownNode, storedNode } from '../../kube/heartbeat-times.ts';
import type { KubeNode, KubeObject } from '../../kube/types.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ItemStore } from '../../ports/item-store.ts';
import { confirmStatus, readHeartbeatTimes, statusReceived } from '../../store/health-store.ts';
import type { ResourceStorage, WriteResult } from './resource-storage.ts';

/**
 * A status is written whole at least this often. Watches tell only whole writes, and what a lost stream record left undone
 * is mended by the next. Seconds.
 */
const WHOLE_AFTER_SECONDS = 86_400;
/** Our taints and the cloud's: something is going on with the node that its next change may have to move on. */
const TAINTS_OF_CONTROLLERS = /^node\.(cloudprovider\.)?kubernetes\.io\//;

export interface NodeStorageOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  /** Nodes without pod CIDRs wait for them, and are tried again with each whole write. */
  readonly allocatesPodCidrs: boolean;
}

export function nodeStorage(objects: ResourceStorage, options: NodeStorageOptions): ResourceStorage {
  const { items, clock } = options;
  /** What was shown, as it is stored. */
  const storedOf = new WeakMap<KubeObject, KubeNode>();
  const readOf = (shown: KubeObject) => ({
    shown: shown as KubeNode,
    stored: storedOf.get(shown) ?? (shown as KubeNode),
  });

  function show(node: KubeObject, times: HeartbeatTimes | undefined): KubeObject {
    const shown = shownNode(node as KubeNode, times);
    if (shown !== node) storedOf.set(shown, node as KubeNode);
    return shown;
  }

  async function shownAll(nodes: readonly KubeObject[], consistent: boolean): Promise<readonly KubeObject[]> {
    const names = nodes.map(({ metadata }) => metadata.name ?? '');
    const times = await readHeartbeatTimes(items, names, { consistent });
    return nodes.map((node, index) => show(node, times.get(names[index]!)));
  }

  /** Steady, so that nobody waits for a change of this node. The row is asked for the rest when it is written. */
  function isSteady({ metadata, spec, status }: KubeNode): boolean {
    return (
      metadata.deletionTimestamp === undefined &&
      readyStatusOf(status?.conditions) === 'True' &&
      !(spec?.taints ?? []).some(({ key }) => TAINTS_OF_CONTROLLERS.test(key)) &&
      (!options.allocatesPodCidrs || (spec?.podCIDRs ?? []).length > 0)
    );
  }

  return {
    ...objects,
    async get(namespace, name) {
      const [node, times] = await Promise.all([
        objects.get(namespace, name),
        readHeartbeatTimes(items, [name], { consistent: true }),
      ]);
      if (node === undefined) return undefined;
      return show(node, times.get(name));
    },
    async list(query) {
      const page = await objects.list(query);
      return { ...page, items: await shownAll(page.items, false) };
    },
    async update(next, old, along) {
      const read = readOf(old);
      const result = await objects.update(storedNode(next as KubeNode, read), read.stored, along);
      if (result.kind !== 'written' || next.status === undefined) return result;
      return { kind: 'written', object: { ...result.object, status: next.status } };
    },
    async received({ metadata: { name = '', uid = '' } }) {
      await items.write(statusReceived(name, { uid, nowMs: clock.nowMs() }));
    },
    async confirm(next, old): Promise<WriteResult | undefined> {
      const read = readOf(old);
      const node = next as KubeNode;
      const times = isSteady(node) ? movedTimes(node, read) : undefined;
      if (times === undefined || times.toSeconds - times.fromSeconds >= WHOLE_AFTER_SECONDS) return undefined;
      const { name = '', uid = '' } = node.metadata;
      const outcome = await items.write(confirmStatus(name, { uid, times, nowMs: clock.nowMs() }));
      return outcome.kind === 'written' ? { kind: 'written', object: node } : undefined;
    },
  };
}
