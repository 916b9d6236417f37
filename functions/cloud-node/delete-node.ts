/**
 * Deletes a Node because of EC2's answer, with the same effects as DELETE through the API: the digest and the Lease are
 * deleted in the same commit (D14), and finalizers delay the deletion. Timers, CIDRs and queue entries follow from the
 * change of the Node.
 *
 * The commit requires the version of the Node that was evaluated, and thus its Ready status. It also requires that no
 * other answer about the instance was stored since.
 */
import type { EventText } from '../../shared/events/event-text.ts';
import { eventWrite, subjectOf } from '../../shared/events/record-event.ts';
import { leaveWatchWrite, type WatchRow } from '../../shared/fleet/instances/watch-list-store.ts';
import { healthWritesFor, nodeRef } from '../../shared/fleet/nodes/change-node.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { markDeleted } from '../../shared/kubernetes/deletion.ts';
import { type PutWrite, StoreFault } from '../../shared/store/item-store.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import type { CloudNodeDependencies } from './dependencies.ts';

const ATTEMPTS_MAX = 6;

export type NodeDeletion =
  | { readonly kind: 'deleted' }
  /** Marked for deletion; finalizers delay it. */
  | { readonly kind: 'held' }
  /** The current state of the Node does not require its deletion. */
  | { readonly kind: 'spared' }
  /** The Node no longer exists, or another Node has its name. */
  | { readonly kind: 'gone' }
  /** Another call stored an answer of EC2 since. */
  | { readonly kind: 'overtaken' };

/** @throws StoreFault when other commits kept conflicting */
export async function deleteNode(
  { objects, random }: Pick<CloudNodeDependencies, 'objects' | 'random'>,
  row: WatchRow,
  nowMs: number,
  /** Event and decision record for the current state of the Node; undefined: do not delete it. */
  decide: (node: KubeNode) => { readonly event: EventText; readonly record: PutWrite } | undefined,
): Promise<NodeDeletion> {
  const ref = nodeRef(row.nodeName);
  let node: KubeNode | undefined = await objects.get(ref);
  let hasEvent = false;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    if (node === undefined || node.metadata.uid !== row.uid) return { kind: 'gone' };
    const decided = decide(node);
    if (decided === undefined) return { kind: 'spared' };
    const { event, record } = decided;
    const isHeld = (node.metadata.finalizers ?? []).length > 0;
    if (isHeld && node.metadata.deletionTimestamp !== undefined) return { kind: 'held' };
    const write: ObjectWrite = isHeld
      ? { kind: 'update', ref, object: markDeleted(node, 0, nowMs), previous: node }
      : { kind: 'delete', ref, previous: node };
    const about = subjectOf('Node', node);
    const events = hasEvent ? [] : [eventWrite({ ...event, about, once: 'cloud' }, { nowMs, eventUid: random.uuid() })];
    const outcome = await objects.commit({
      writes: [write, ...events],
      extra: isHeld ? [record] : [...healthWritesFor({ kind: 'delete', old: node }), leaveWatchWrite(row), record],
    });
    switch (outcome.kind) {
      case 'committed':
        return { kind: isHeld ? 'held' : 'deleted' };
      case 'extraRefused':
        return { kind: 'overtaken' };
      case 'conflict':
        if (outcome.index === 0) node = outcome.current;
        else hasEvent = true;
        break;
      case 'contended':
        node = await objects.get(ref);
        break;
      case 'tooLarge':
      case 'overfull':
        throw new StoreFault('too-large', 'the Node is too large to be marked for deletion', { retryable: false });
    }
  }
  throw new StoreFault('throttled', 'the Node changed too often to be deleted', { retryable: true });
}
