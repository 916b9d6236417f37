import type { ClusterEvent } from '../domain/events/cluster-event.ts';

export interface PublishOutcome {
  /** Not taken, after all tries. */
  readonly failed: readonly ClusterEvent[];
  /** Why, of the last failure; absent when none failed. */
  readonly reason?: string;
}

/** Where a cluster tells what has happened. Never rejects: nobody who decides waits for those who listen. */
export interface EventBus {
  publish(events: readonly ClusterEvent[], nowMs: number): Promise<PublishOutcome>;
}
