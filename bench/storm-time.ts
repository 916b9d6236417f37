/**
 * Virtual time for thousands of loops at once: sleepers in a heap, woken in order of time. All sleepers of one
 * millisecond run concurrently, and their follow-up work completes before time advances.
 */
import type { AgentTime } from '../agent/ports/time.ts';

interface Sleeper {
  readonly dueMs: number;
  wake: (() => void) | undefined;
}

export interface StormTime extends AgentTime {
  /** Lets time pass up to this moment. */
  passUntil(untilMs: number): Promise<void>;
}

export function stormTime(startMs: number): StormTime {
  let nowMs = startMs;
  const heap: Sleeper[] = [];

  function push(sleeper: Sleeper): void {
    let at = heap.push(sleeper) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.dueMs <= sleeper.dueMs) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = sleeper;
  }

  function pop(): Sleeper {
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.dueMs < heap[child]!.dueMs) child += 1;
      if (heap[child]!.dueMs >= last.dueMs) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }

  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs - startMs,
    uptimeMs: () => nowMs - startMs,
    sleep(milliseconds, signal) {
      if (signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const sleeper: Sleeper = { dueMs: Math.ceil(nowMs + Math.max(0, milliseconds)), wake: undefined };
        const end = (): void => {
          sleeper.wake = undefined;
          signal?.removeEventListener('abort', end);
          resolve();
        };
        sleeper.wake = end;
        signal?.addEventListener('abort', end, { once: true });
        push(sleeper);
      });
    },
    async passUntil(untilMs) {
      await settled();
      while (heap.length > 0 && heap[0]!.dueMs <= untilMs) {
        nowMs = Math.max(nowMs, heap[0]!.dueMs);
        while (heap.length > 0 && heap[0]!.dueMs <= nowMs) pop().wake?.();
        await settled();
      }
      nowMs = untilMs;
    },
  };
}

/** Everything that waits for nothing but other code has run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
