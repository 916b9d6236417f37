/**
 * What the controllers store between ticks about zones and about nodes that wait for a NoExecute taint.
 *
 * - Upstream's queue stores the processed names, because its cache may not show its own taint yet. Here the digest of
 *   the node shows it (NodeHealth.noExecute), so no second set is needed.
 * - A queued node is not enqueued again (L10), so nodes are in the order in which they were first enqueued.
 * - The queue of a zone is bounded (nodesQueuedPerZoneMax). Upstream's holds every node; here each place is a write.
 * - There is no delay for a failed node. When a taint cannot be written, the node stays queued and no token is used.
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
  /** Undefined while the zone has no counted node. */
  readonly state: ZoneState | undefined;
  readonly limiter: Limiter;
  /** When the zone got its first node. Epoch milliseconds; absent: not known. */
  readonly createdAtMs?: number;
}

export interface QueuedNode extends QueueItem {
  readonly zone: string;
}
