/** Whether the lease loop is alive: it made a request recently, with or without success. */

/** Intervals without an answer until the loop counts as dead. A round with pending requests is only slow. */
const INTERVALS_MAX = 6;

/**
 * What is wrong; undefined while the loop is alive. Failed rounds count as rounds: a restart of the agent does not
 * repair the network.
 *
 * @param lastRoundAtMs end of the last round, or the start of the loop. Monotonic milliseconds, as `nowMs`.
 * @param intervalMs between two rounds. Milliseconds.
 */
export function leaseLoopComplaint(lastRoundAtMs: number, nowMs: number, intervalMs: number): string | undefined {
  const silentMs = nowMs - lastRoundAtMs;
  if (silentMs <= INTERVALS_MAX * intervalMs) return undefined;
  return `no round of the lease loop ended for ${Math.round(silentMs / 1_000)} s`;
}
