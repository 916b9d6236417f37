/**
 * When a machine may wait for its relay (docs/relay.md). Pure.
 *
 * A relay that hangs delays a heartbeat by RELAY_WAIT_MS. The node must still be alive for node-monitor when the heartbeat
 * has then been sent directly. A machine does not know its grace period. It knows the interval that it follows, and the
 * relation that every valid policy has (shared/config/policy.ts): the grace period is at least GRACE_INTERVALS_MIN
 * intervals, in each profile. A machine follows a shorter interval at once and a longer one later (lease.ts), so the
 * grace period is at least GRACE_INTERVALS_MIN of the intervals that it follows.
 *
 * From one stored heartbeat to the next, if the relay answers the first and hangs at the second:
 *
 *   stored ── answer ──┼──── interval ────┼── relay hangs ──┼── direct ──┤ stored
 *           ≤ 2.8 s        ≤ 1.04 × I            5 s             1 s
 *
 * 1. A relay waits 2.8 s for the answer to a batch. Without one it answers 503, and the machine sends directly.
 * 2. This sum is 1.04 × I + 8.8 s, the least grace period. It is at most 2 × I from I = 9.17 s on. Policies have whole
 *    seconds: a relay is used with intervals of 10 s and more.
 * 3. With a shorter interval some permitted grace period is shorter than the sum. The relay is then not used at all.
 *
 * The answer may take longer than 2.8 s on its way through the site, and one heartbeat may need several attempts. So
 * isTimeForRelay also measures: it counts from the begin of the last accepted heartbeat, which is before it was stored. A
 * machine begins to wait for its relay only if a heartbeat that is sent directly after the wait is still in time.
 *
 * The other relation, at least two periods of node-monitor, would permit a relay for an interval of 1 s and for none
 * between 2 s and 9 s. It is not used.
 */
import { GRACE_INTERVALS_MIN } from '../../shared/domain/policy.ts';
import { INTERVAL_JITTER } from './lease.ts';

/** Time limit of a heartbeat through a relay: 2 s of collecting, the request of the batch, and the site. Milliseconds. */
export const RELAY_WAIT_MS = 5_000;
/** Time limit of a batch at the relay. Milliseconds. */
export const BATCH_WAIT_MS = 2_800;
/** Time for a heartbeat that is sent directly until it is stored. Milliseconds. */
const DIRECT_MS = 1_000;

/** The shortest grace period of a policy with this interval. Milliseconds. */
const shortestGraceMs = (intervalMs: number): number => GRACE_INTERVALS_MIN * intervalMs;

/** The least grace period with which a relay that hangs marks no node. Milliseconds. */
const neededGraceMs = (intervalMs: number): number =>
  BATCH_WAIT_MS + (1 + INTERVAL_JITTER) * intervalMs + RELAY_WAIT_MS + DIRECT_MS;

/** Whether a machine with this interval uses a relay. */
export const isRelayUsable = (intervalMs: number): boolean => neededGraceMs(intervalMs) <= shortestGraceMs(intervalMs);

/** @param silentMs since the begin of the last heartbeat that was accepted. Milliseconds. */
export const isTimeForRelay = (silentMs: number, intervalMs: number): boolean =>
  silentMs + RELAY_WAIT_MS + DIRECT_MS <= shortestGraceMs(intervalMs);
