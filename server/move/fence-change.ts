/**
 * Sets and lifts the fence of a cluster that is served (docs/decisions/0059-moving-a-cluster.md).
 *
 * Changes are made one after another, in the order of the commands:
 *
 * - No other change runs between the look at the fence and `setFence`. So a change that finds another state is refused
 *   before it stops anything, and its answer is right.
 * - Work and writes that this change stopped are still stopped when its fence is set. A second change that ended
 *   meanwhile would start them again, and ticks would run behind the fence.
 * - Work is started by the change that stopped it and failed, or by the one that lifted the fence.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type Fence, type FenceState, isInState } from '../../shared/store/move-rows.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';

/** Longest wait for functions before a fence, and between two looks at them. Milliseconds. */
const DRAIN_MS = 20_000;
const DRAIN_POLL_MS = 50;

type FencedStore = Pick<SqliteStore, 'fence' | 'setFence' | 'pending'>;

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

type FenceChange = (store: FencedStore, next: Fence | undefined, expected: FenceState | undefined) => Promise<boolean>;

export function fenceChange(work: FencedWork): FenceChange {
  let last: Promise<unknown> = Promise.resolve();
  return (store, next, expected) => {
    const change = last.then(() => changed(work, store, next, expected));
    last = change.catch(() => {});
    return change;
  };
}

/** Before a fence everything that was committed is worked on: a row of a change does not move. */
async function changed(
  { consumers, onDraining, stopWork, startWork }: FencedWork,
  store: FencedStore,
  ...[next, expected]: readonly [Fence | undefined, FenceState | undefined]
): Promise<boolean> {
  if (!isInState(store.fence(), expected)) return false;
  const isFirst = expected === undefined && next !== undefined;
  try {
    if (isFirst) {
      onDraining(true);
      await stopWork(() => drained(store, consumers));
    }
    return await store.setFence(next, expected);
  } finally {
    if (isFirst) onDraining(false);
    // Also after a fault: the store says whether there is a fence now.
    if (isFirst || expected !== undefined) startWork();
  }
}

/** Until no change waits for a function. One that fails again and again does not hold a fence up: the move says so. */
async function drained(store: FencedStore, consumers: readonly string[]): Promise<void> {
  const deadlineMs = performance.now() + DRAIN_MS;
  while (consumers.some((consumer) => store.pending(consumer, 1).length > 0) && performance.now() < deadlineMs) {
    await pause(DRAIN_POLL_MS);
  }
}
