/**
 * Maintains the list of nodes that EC2 is asked about (watch-list-store.ts), from object-stream. Each row is written
 * from the current state of the Node, so late or repeated records do no harm. A lost record is repaired by the next
 * change of that Node. cloud-node also compares every row with its Node at intervals.
 */

import type { KubeNode } from '../../kinds/types.ts';
import type { WorkDependencies } from '../../ticks/dependencies.ts';
import type { RecordWork } from '../../ticks/item-change.ts';
import { nodeRef } from '../nodes/change-node.ts';
import { readyStatusOf } from '../nodes/conditions.ts';
import { createdAtMsOf } from '../nodes/node-digest.ts';
import { isUninitialised } from './initialisation.rule.ts';
import { hasShutdownTaint, isWatched, outOfServiceTaintOf, type WatchedNode } from './watch-list.rule.ts';
import { cloudStore } from './watch-list-store.ts';

interface NodeRecord {
  readonly position: number;
  readonly before: KubeNode | undefined;
  readonly after: KubeNode | undefined;
  /** A retry: `before` has only names, so a comparison decides nothing. */
  readonly isRetry?: boolean;
}

export function watchedNodeOf(node: KubeNode): WatchedNode {
  const taints = node.spec?.taints ?? [];
  return {
    nodeName: node.metadata.name ?? '',
    uid: node.metadata.uid ?? '',
    providerId: node.spec?.providerID ?? '',
    createdAtMs: createdAtMsOf(node),
    ready: readyStatusOf(node.status?.conditions),
    hasShutdownTaint: hasShutdownTaint(taints),
    outOfServiceTaint: outOfServiceTaintOf(taints),
    uninitialised: isUninitialised(taints),
  };
}

export const isWatchedNode = (node: KubeNode | undefined): boolean =>
  node !== undefined && isWatched(watchedNodeOf(node));

/** One unit of work per node that is, or was, watched. */
export function cloudWatchWorks(dependencies: WorkDependencies, nodes: readonly NodeRecord[]): RecordWork[] {
  const byName = new Map<string, { uid: string; readonly of: number[] }>();
  for (const { before, after, position, isRetry } of nodes) {
    if (isRetry !== true && !isWatchedNode(before) && !isWatchedNode(after)) continue;
    const { name = '', uid = '' } = (after ?? before)?.metadata ?? {};
    const known = byName.get(name);
    if (known === undefined) byName.set(name, { uid, of: [position] });
    else {
      known.uid = uid;
      known.of.push(position);
    }
  }
  return [...byName].map(([name, { uid, of }]) => ({ of, run: () => settleWatch(dependencies, name, uid) }));
}

async function settleWatch({ items, objects }: WorkDependencies, nodeName: string, uid: string): Promise<void> {
  const list = cloudStore(items);
  const node: KubeNode | undefined = await objects.get(nodeRef(nodeName));
  // The Node does not exist: no version of its row is needed.
  if (node === undefined) return list.unwatch({ nodeName, uid }, Number.MAX_SAFE_INTEGER);
  const watched = watchedNodeOf(node);
  const version = Number(node.metadata.resourceVersion ?? 0);
  return isWatched(watched) ? list.watch(watched, version) : list.unwatch(watched, version);
}
