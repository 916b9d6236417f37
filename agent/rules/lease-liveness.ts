/** Whether the loop that renews the Lease is alive: it tried lately, whatever came of it. */

/** A round that hangs on its requests is slow, not dead; this many intervals without the end of one are a dead loop. */
const INTERVALS_MAX = 6;

/**
 * What is wrong; undefined while the loop is alive. A server that cannot be reached is no fault of ours: rounds that fail
 * count, so that nobody restarts an agent for want of a network.
 *
 * @param lastRoundAtMs end of the last round, or the start of the loop. Monotonic milliseconds, as `nowMs`.
 * @param intervalMs between two rounds. Milliseconds.
 */
export function leaseLoopComplaint(lastRoundAtMs: number, nowMs: number, intervalMs: number): string | undefined {
  const silentMs = nowMs - lastRoundAtMs;
  if (silentMs <= INTERVALS_MAX * intervalMs) return undefined;
  return `no round of the lease loop ended for ${Math.round(silentMs / 1_000)} s`;
}
