/** Sets and lifts the fence of a cluster that is served (docs/decisions/0059-moving-a-cluster.md). */
import { setTimeout as pause } from 'node:timers/promises';
import type { Fence, FenceState } from '../../shared/store/move-rows.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';

/** Longest wait for functions before a fence, and between two looks at them. Milliseconds. */
const DRAIN_MS = 20_000;
const DRAIN_POLL_MS = 50;

export interface FencedWork {
  /** Names of those who work on committed changes. */
  readonly consumers: readonly string[];
  /** True while writes are refused before the fence is there. */
  onDraining(isDraining: boolean): void;
  /** Ends ticks, waits for `drained`, and ends the delivery of changes. */
  stopWork(drained: () => Promise<void>): Promise<void>;
  /** Without effect while there is a fence. */
  startWork(): void;
}

/** Before a fence everything that was committed is worked on: a row of a change does not move. */
export const fenceChange =
  ({ consumers, onDraining, stopWork, startWork }: FencedWork) =>
  async (store: SqliteStore, next: Fence | undefined, expected: FenceState | undefined): Promise<boolean> => {
    try {
      if (store.fence() === undefined) {
        onDraining(true);
        await stopWork(() => drained(store, consumers));
      }
      return await store.setFence(next, expected);
    } finally {
      onDraining(false);
      startWork();
    }
  };

/** Until no change waits for a function. One that fails again and again does not hold a fence up: the move says so. */
async function drained(store: SqliteStore, consumers: readonly string[]): Promise<void> {
  const deadlineMs = performance.now() + DRAIN_MS;
  while (consumers.some((consumer) => store.pending(consumer, 1).length > 0) && performance.now() < deadlineMs) {
    await pause(DRAIN_POLL_MS);
  }
}
