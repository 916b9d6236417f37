import type { Limiter } from './limiter.ts';
import type { ZoneState } from './zone-state.ts'; /** What the controllers remember about zones and waiting nodes between ticks. */
/**
 * Nodes that wait for their zone's limiter, and the order of their turns.
 *
 * Upstream's queue remembers the names it has dealt with, so that a controller which does not yet see its own effect does not
 * do it twice. Ours needs no second set: what was dealt with shows in the node's digest (NodeHealth.noExecute), and one that is
 * waiting is not stamped again (L10), so the order is that of the first enqueueing. Nothing is put back for a later time
 * either: a taint that could not be written leaves the node where it waits, and its token where it was.
 *
 * Source: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go. Left out on purpose: a token taken for an item
 * that is not due (D4).
 */
export interface QueueItem {
  readonly nodeName: string;
  /** uid of the Node meant; an item of a Node since re-created is dropped (D2). */
  readonly uid: string;
  /** When it was enqueued. Epoch milliseconds. */
  readonly addedAtMs: number;
}

/** A zone as stored. Kept while the zone has nodes, and after that until its limiter is full again (L3). */
export interface ZoneRecord {
  readonly zone: string;
  /** Absent while no node of the zone counts. */
  readonly state: ZoneState | undefined;
  readonly limiter: Limiter;
}

export interface QueuedNode extends QueueItem {
  readonly zone: string;
}
