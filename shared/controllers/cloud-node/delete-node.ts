/**
 * Deleting a Node on EC2's word, as DELETE through the API does it: its digest and Lease go in the same commit (D14), and
 * finalizers hold it. What else belongs to it (timers, CIDRs, a turn in a queue) follows from the change of the Node.
 *
 * The commit rests on the version of the Node that was read, so on its Ready status; and on what has been seen of its
 * instance, so that an answer which somebody else got in the meantime is not passed over.
 */
import type { EventText } from '../../domain/events/event-text.ts';
import { markDeleted } from '../../kube/deletion.ts';
import type { KubeNode } from '../../kube/types.ts';
import { type PutWrite, StoreFault } from '../../ports/item-store.ts';
import { healthWritesFor } from '../../store/node-writes.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { nodeRef } from '../framework/change-node.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { eventWrite, subjectOf } from '../framework/record-event.ts';
import { leaveWatchWrite, type WatchRow } from './watch-list-store.ts';

const ATTEMPTS_MAX = 6;

export type NodeDeletion =
  | { readonly kind: 'deleted' }
  /** Marked, and held by finalizers. */
  | { readonly kind: 'held' }
  /** As it is now, it is not to be deleted. */
  | { readonly kind: 'spared' }
  /** It went by itself, or another one has its name. */
  | { readonly kind: 'gone' }
  /** Somebody else has heard from EC2 since. */
  | { readonly kind: 'overtaken' };

/** @throws StoreFault when other commits stayed in the way */
export async function deleteNode(
  { objects, random }: Pick<ControllerDependencies, 'objects' | 'random'>,
  row: WatchRow,
  nowMs: number,
  /** The event to tell with it and its record, for the Node as it is; undefined: not to be deleted. */
  decide: (node: KubeNode) => { readonly event: EventText; readonly record: PutWrite } | undefined,
): Promise<NodeDeletion> {
  const ref = nodeRef(row.nodeName);
  let node = (await objects.get(ref)) as KubeNode | undefined;
  let isTold = false;
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
    const events = isTold ? [] : [eventWrite({ ...event, about, once: 'cloud' }, { nowMs, eventUid: random.uuid() })];
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
        if (outcome.index === 0) node = outcome.current as KubeNode | undefined;
        else isTold = true;
        break;
      case 'contended':
        node = (await objects.get(ref)) as KubeNode | undefined;
        break;
      case 'tooLarge':
      case 'overfull':
        throw new StoreFault('too-large', 'a Node is too large to be marked', { retryable: false });
    }
  }
  throw new StoreFault('throttled', 'a Node kept changing under its deletion', { retryable: true });
}
