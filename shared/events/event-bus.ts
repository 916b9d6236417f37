import type { ClusterEvent } from './cluster-event.ts';

export interface PublishOutcome {
  /** Events that the bus did not accept after all attempts. */
  readonly failed: readonly ClusterEvent[];
  /** Reason of the last failure; absent if there was none. */
  readonly reason?: string;
}

/** Publishes events of the cluster. Never rejects: a controller does not depend on its subscribers. */
export interface EventBus {
  publish(events: readonly ClusterEvent[], nowMs: number): Promise<PublishOutcome>;
}
