/**
 * The clock of the change logs of a replica: the time of the version up to which it has every change of every
 * resource. By this clock readers raise heads (shared/store/change-log.ts), versions expire, and rows of the log are
 * deleted: the store has the same clock. It stands still while nothing is written, so nothing expires while the cluster
 * cannot be reached.
 */
import type { Clock } from '../../shared/clock.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../shared/store/layout.ts';

/** A longer step may be longer than the log is kept. Milliseconds. */
const STEP_MS = 600_000;
/** A longer step waits for this time: watches that are held read first what it would expire. Milliseconds. */
const DELIVERY_MS = 60_000;

/** @param oldestCursor 0: there is none */
export function versionClock(oldestCursor: () => number, clock: Clock): Clock {
  let shownMs = 0;
  let stepSeenAtMs: number | undefined;
  return {
    nowMs() {
      const nextMs = Math.floor(oldestCursor() / RESOURCE_VERSIONS_PER_MS);
      if (shownMs > 0 && nextMs - shownMs > STEP_MS) {
        stepSeenAtMs ??= clock.nowMs();
        if (Math.abs(clock.nowMs() - stepSeenAtMs) < DELIVERY_MS) return shownMs;
      }
      stepSeenAtMs = undefined;
      shownMs = nextMs;
      return shownMs;
    },
  };
}
