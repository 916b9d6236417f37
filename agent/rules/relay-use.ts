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
 * before it was stored. The wait ends when a heartbeat that is sent directly is still stored within steadySeconds, 14 s
 * with an interval of 10 s. It also ends when the next heartbeat, sent directly, would be too late otherwise: a relay
 * may have this one stored at once and answer at the end. If too little time is left for a relay to collect, the
 * heartbeat is sent directly at once:
 *
 *   begin ── answer ──┼──── interval ────┼── relay hangs ──┼── direct ──┤ stored
 *          ≤ 1.1 s        ≤ 1.04 × I        ≥ 1.5 s             1 s
 *
 * The request says for how long the relay may collect (collectMs): 1 s with an interval of 10 s.
 *
 * limitedAttempt bounds each direct attempt, with a relay or without one: another attempt, on a new connection, is
 * still in time. A longer interval leaves each attempt more time, up to the configured limit.
 */
import {
  graceSecondsMin,
  INTERVAL_JITTER,
  RELAYED_INTERVAL_SECONDS_MIN,
  steadySeconds,
} from '../../shared/fleet/policy.ts';
import type { KubeRequest } from '../ports/kube-api.ts';

/**
 * Time limit of a heartbeat through a relay: 2 s of collecting, the request of the batch, and the site. Milliseconds.
 */
export const RELAY_WAIT_MS = 5_000;
/** How long a relay collects a batch. Milliseconds. */
export const COLLECT_MS = 2_000;
/**
 * How long a batch is collected after the heartbeat of the leader. Machines of one batch send the next heartbeat within
 * 4 % of their interval. No heartbeat has a batch sent sooner. Milliseconds.
 */
export const COLLECT_AFTER_LEADER_MS = 500;
/** Time for the request of a batch and for the network of the site, at most and usually. Milliseconds. */
const BATCH_ANSWER_MS = 1_000;
const USUAL_ANSWER_MS = 100;
/** The shortest wait for a relay. Milliseconds. */
const RELAY_WAIT_MS_MIN = COLLECT_AFTER_LEADER_MS + BATCH_ANSWER_MS;
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
  const spareMs = directAtMs(intervalMs) - Math.ceil(silentMs);
  return spareMs < RELAY_WAIT_MS_MIN ? undefined : Math.min(spareMs, longestWaitMs(intervalMs), RELAY_WAIT_MS);
}

/** The last moment to send a heartbeat directly, after the begin of the one before. Milliseconds. */
const directAtMs = (intervalMs: number): number => Math.floor(1_000 * steadySeconds(intervalMs / 1_000)) - DIRECT_MS;

/** With an answer at the end of this wait, the next heartbeat is due at that moment. Milliseconds. */
const longestWaitMs = (intervalMs: number): number =>
  directAtMs(intervalMs) - Math.ceil((1 + INTERVAL_JITTER) * intervalMs);

/**
 * How long a relay may collect for a heartbeat that waits for it for `waitMs`: its answer is then in time, and the next
 * heartbeat can wait for the relay, too. Milliseconds.
 */
export function collectMs(waitMs: number, intervalMs: number): number {
  const nextMs = longestWaitMs(intervalMs) - RELAY_WAIT_MS_MIN - USUAL_ANSWER_MS;
  return Math.max(COLLECT_AFTER_LEADER_MS, Math.min(COLLECT_MS, waitMs - BATCH_ANSWER_MS, nextMs));
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
