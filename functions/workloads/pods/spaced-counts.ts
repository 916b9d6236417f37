/**
 * Spaces what counts all pods of a namespace. Each change of a pod may change the count, and the count costs what the
 * namespace has: without a pause, the creation of 10,000 pods, or a slow rollout among them, would count for as long as
 * it lasts, and delay the workloads of every other namespace. A count that needs less than FREE_MS is never spaced.
 *
 * Known in one process. Others count at most as often again.
 */
import type { Clock } from '../../../shared/clock.ts';

/** Milliseconds. */
const FREE_MS = 250;
/** The pause after a count, as a multiple of its duration. */
const PAUSES = 9;
/** Milliseconds. */
const PAUSE_MS_MAX = 30_000;
/** Counts in memory. The oldest one is dropped first, and is then not spaced. */
const KNOWN_MAX = 1_000;

export interface SpacedCounts {
  /** When it may begin. Epoch milliseconds; undefined: now. `name`: of what is counted. */
  pausedUntilMs(name: string): number | undefined;
  run(name: string, count: () => Promise<void>): Promise<void>;
}

export function spacedCounts(clock: Clock): SpacedCounts {
  const pausedUntilMs = new Map<string, number>();
  return {
    pausedUntilMs(name) {
      const untilMs = pausedUntilMs.get(name);
      return untilMs === undefined || untilMs <= clock.nowMs() ? undefined : untilMs;
    },
    async run(name, count) {
      const startMs = clock.nowMs();
      try {
        await count();
      } finally {
        const endMs = clock.nowMs();
        const tookMs = endMs - startMs;
        pausedUntilMs.delete(name);
        if (tookMs >= FREE_MS) pausedUntilMs.set(name, endMs + Math.min(PAUSE_MS_MAX, PAUSES * tookMs));
        if (pausedUntilMs.size > KNOWN_MAX) pausedUntilMs.delete(pausedUntilMs.keys().next().value as string);
      }
    },
  };
}
