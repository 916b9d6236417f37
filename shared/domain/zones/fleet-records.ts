/**
 * What the controllers store about zones and waiting nodes between ticks.
 *
 * Upstream's queue remembers the names it has processed, so that a controller that does not yet see its own effect does
 * not repeat it. Here the node's digest shows the effect (NodeHealth.noExecute), so a second set is not needed. A
 * waiting node is not enqueued again (L10), so the order is that of the first enqueueing. No item is delayed: when a
 * taint cannot be written, the node and the token stay where they are.
 *
 * Source: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go, without its token for an item that is not due
 * (D4).
 */

import type { Limiter } from './limiter.ts';
import type { ZoneState } from './zone-state.ts';

export interface QueueItem {
  readonly nodeName: string;
  /** uid of the Node; the item of a Node that was re-created since is dropped (D2). */
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
  /** When the zone got its first node. Epoch milliseconds. Absent in a record of an earlier version. */
  readonly createdAtMs?: number;
}

export interface QueuedNode extends QueueItem {
  readonly zone: string;
}
