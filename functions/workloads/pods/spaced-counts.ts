/**
 * Spaces what reads all pods of a namespace. Each change of a pod may change the count, and the count costs what the
 * namespace has: without a pause, the creation of 10,000 pods, or a slow rollout among them, would count for as long as
 * it lasts, and delay the workloads of every other namespace. A count that reads up to FREE_OBJECTS is never spaced.
 *
 * Known in one process. Others count at most as often again.
 */
import type { Clock } from '../../../shared/clock.ts';
import type { ObjectStore } from '../../../shared/store/object-store.ts';

const FREE_OBJECTS = 5_000;
/** An object needs 0.03 ms of one core to be read, so a count needs 3 % of it. */
const PAUSE_MS_PER_OBJECT = 1;
/** Milliseconds. */
const PAUSE_MS_MAX = 30_000;
/** Counts in memory. The oldest one is dropped first, and is then not spaced. */
const KNOWN_MAX = 1_000;

export interface SpacedCounts {
  /** When it may begin. Epoch milliseconds; undefined: now. `name`: of what is counted. */
  pausedUntilMs(name: string): number | undefined;
  /** `count` gets the objects, which are counted as it reads them. */
  run(name: string, objects: ObjectStore, count: (objects: ObjectStore) => Promise<void>): Promise<void>;
}

export function spacedCounts(clock: Clock): SpacedCounts {
  const pausedUntilMs = new Map<string, number>();
  return {
    pausedUntilMs(name) {
      const untilMs = pausedUntilMs.get(name);
      return untilMs === undefined || untilMs <= clock.nowMs() ? undefined : untilMs;
    },
    async run(name, objects, count) {
      let read = 0;
      try {
        await count({
          ...objects,
          async list(request) {
            const page = await objects.list(request);
            read += page.objects.length;
            return page;
          },
        });
      } finally {
        pausedUntilMs.delete(name);
        const pauseMs = Math.min(PAUSE_MS_MAX, PAUSE_MS_PER_OBJECT * read);
        if (read > FREE_OBJECTS) pausedUntilMs.set(name, clock.nowMs() + pauseMs);
        if (pausedUntilMs.size > KNOWN_MAX) pausedUntilMs.delete(pausedUntilMs.keys().next().value as string);
      }
    },
  };
}
