/**
 * How long a machine waits for its relay, and for one attempt to send a heartbeat (docs/relay.md). Pure.
 *
 * A way that hangs delays a heartbeat by its time limit. The node must still be alive for node-monitor when the
 * heartbeat has then been sent once more. A machine does not know its grace period. It knows the interval that it
 * follows, and the shortest grace period that a policy may have with it (graceSecondsMin). A machine follows a shorter
 * interval at once and a longer one later (lease.ts), so its grace period is at least that one.
 *
 * From one stored heartbeat to the next, if the relay answers the first, and at the second both the relay and the first
 * direct request hang:
 *
 *   stored ── answer ──┼──── interval ────┼── relay hangs ──┼── direct hangs ──┼── direct ──┤ stored
 *           ≤ 2.8 s        ≤ 1.04 × I             5 s               3 s             1 s
 *
 * 1. A relay waits 2.8 s for the answer to a batch. Without one it answers 503, and the machine sends directly.
 * 2. This sum is 1.04 × I + 11.8 s. Policies with intervals from 10 s on have no shorter grace period.
 * 3. With a shorter interval some permitted grace period is shorter than the sum. The relay is then not used at all.
 *
 * A relay may lie. One that holds back heartbeats, and reports their machine as silent (docs/witnesses.md), must not
 * have it marked. So relayWaitMs also measures: it counts from the begin of the last accepted heartbeat, which is
 * before it was stored. The wait ends when a heartbeat that is sent directly is still stored within steadySeconds, 15 s
 * with an interval of 10 s. If too little time is left for a relay to collect, the heartbeat is sent directly at once:
 *
 *   begin ── answer ──┼──── interval ────┼── relay hangs ──┼── direct ──┤ stored
 *          ≤ 1 s          ≤ 1.04 × I        ≥ 2.6 s             1 s
 *
 * Machines that are not in one batch yet wait for up to 2 s of collecting, so some of their heartbeats are direct.
 *
 * limitedAttempt bounds each direct attempt, with a relay or without one: another attempt, on a new connection, is
 * still in time. A longer interval leaves each attempt more time, up to the configured limit.
 */
import { graceSecondsMin, RELAYED_INTERVAL_SECONDS_MIN, steadySeconds } from '../../shared/fleet/policy.ts';
import type { KubeRequest } from '../ports/kube-api.ts';

/**
 * Time limit of a heartbeat through a relay: 2 s of collecting, the request of the batch, and the site. Milliseconds.
 */
export const RELAY_WAIT_MS = 5_000;
/** The shortest wait for a relay: collecting, and a quick answer. Milliseconds. */
const RELAY_WAIT_MS_MIN = 2_600;
/** Time limit of a batch at the relay. Milliseconds. */
export const BATCH_WAIT_MS = 2_800;
/** Time for a heartbeat that is sent directly until it is stored. Milliseconds. */
const DIRECT_MS = 1_000;
/** The shortest time limit of a direct attempt: a slow link and a new connection need as long. Milliseconds. */
const ATTEMPT_MS_MIN = 3_000;

/** The shortest grace period of a policy with this interval. Milliseconds. */
const shortestGraceMs = (intervalMs: number): number => 1_000 * graceSecondsMin(intervalMs / 1_000);

/** Whether a machine with this interval uses a relay. */
export const isRelayUsable = (intervalMs: number): boolean => intervalMs >= 1_000 * RELAYED_INTERVAL_SECONDS_MIN;

/**
 * How long a heartbeat may wait for the relay; undefined: it is sent directly first. Milliseconds.
 *
 * @param silentMs since the begin of the last heartbeat that was accepted. Milliseconds.
 */
export function relayWaitMs(silentMs: number, intervalMs: number): number | undefined {
  const spareMs = Math.floor(1_000 * steadySeconds(intervalMs / 1_000) - silentMs) - DIRECT_MS;
  return spareMs < RELAY_WAIT_MS_MIN ? undefined : Math.min(spareMs, RELAY_WAIT_MS);
}

/**
 * The earliest time at which an accepted heartbeat was stored. The cluster stored it after it was sent. A relay that is
 * in its time limits also collected it before. Milliseconds, in the unit of `fromMs` and `answeredAtMs`.
 */
export const earliestStoredMs = (beat: {
  readonly fromMs: number;
  readonly answeredAtMs: number;
  readonly isRelayed: boolean;
}): number => (beat.isRelayed ? Math.max(beat.fromMs, beat.answeredAtMs - BATCH_WAIT_MS) : beat.fromMs);

/**
 * A heartbeat to send directly, with the time limit of this attempt: after it, another attempt is in time. An attempt
 * that is too late for that keeps its limit: a shorter one would only break slow links. Other requests stay as they
 * are.
 */
export function limitedAttempt(request: KubeRequest, monotonicMs: number): KubeRequest {
  const { heartbeat, timeoutMs = Number.POSITIVE_INFINITY } = request;
  if (heartbeat?.storedAtMs === undefined) return request;
  const silentMs = monotonicMs - heartbeat.storedAtMs;
  const spareMs = Math.floor(shortestGraceMs(heartbeat.intervalMs) - silentMs) - DIRECT_MS;
  return spareMs >= ATTEMPT_MS_MIN && spareMs < timeoutMs ? { ...request, timeoutMs: spareMs } : request;
}
