/**
 * The least interval between groups. Each commit costs about 0.1 ms of CPU and a sync, whatever it holds, so under load
 * a short wait is repaid by writes that share a commit: a third of the CPU at 500 writes per second.
 *
 * The interval grows while groups hold several writes and shrinks while they hold one. A client that waits for each
 * answer before it writes again gains nothing by a wait, and does not get one.
 */
const INTERVAL_MS_MAX = 5;
const GROWTH_MS = 0.5;
/** With arrivals at random, the interval grows from some 250 writes per second on. */
const SHRINK_MS = 0.15;

export function nextIntervalMs(intervalMs: number, writesInGroup: number, intervalMsMax = INTERVAL_MS_MAX): number {
  if (writesInGroup > 1) return Math.min(intervalMsMax, intervalMs + GROWTH_MS);
  return Math.max(0, intervalMs - SHRINK_MS);
}
