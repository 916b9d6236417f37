/**
 * Pods that must not run twice: annotation `nodekeeper.dev/offline-stop-after` (docs/agent.md, decision 0061).
 *
 *     b      last heartbeat of the machine that the cluster answered
 *     b + s  the machine begins to stop the pod, if no later heartbeat was answered
 *     + g    the pod has stopped: its termination grace period is over
 *     + m    the margin is over: the cluster removes the pod, and its controller creates another one
 *
 * Both sides count from the same heartbeat: the machine from before it sent it, the cluster from when it received it.
 * So the machine is never later than the cluster, and the times that their clocks show do not matter.
 */
import { parseGoDuration } from '../../kubernetes/go-duration.ts';
import type { KubePod } from '../types.ts';

export const OFFLINE_STOP_AFTER = 'nodekeeper.dev/offline-stop-after';

/** Twice the time in which a machine with a relay beats directly: only direct heartbeats count. Seconds. */
export const OFFLINE_STOP_SECONDS_MIN = 600;
/** Seconds: 30 days. */
export const OFFLINE_STOP_SECONDS_MAX = 2_592_000;

/** A machine may look late: its agent restarts, or is short of CPU. The cluster's clock may step. Seconds. */
const MARGIN_SECONDS = 60;
/** Two clocks differ by less than this share of the time that they measure. */
const CLOCK_RATE_ERROR = 0.001;

/** Seconds; undefined: not a duration within the limits. */
export function parseOfflineStop(text: string): number | undefined {
  const seconds = (parseGoDuration(text) ?? Number.NaN) / 1_000;
  return seconds >= OFFLINE_STOP_SECONDS_MIN && seconds <= OFFLINE_STOP_SECONDS_MAX ? seconds : undefined;
}

/** Time without an answered heartbeat after which the machine stops the pod. Seconds; undefined: it never does. */
export function offlineStopSeconds({ metadata }: Pick<KubePod, 'metadata'>): number | undefined {
  const text = metadata.annotations?.[OFFLINE_STOP_AFTER];
  return text === undefined ? undefined : parseOfflineStop(text);
}

/**
 * When the pod no longer runs on its machine, by the last sign of life that the cluster received from it. Epoch
 * milliseconds; undefined: it may run for ever.
 */
export function offlineStoppedAtMs(pod: Pick<KubePod, 'metadata' | 'spec'>, lastSpokeAtMs: number): number | undefined {
  const seconds = offlineStopSeconds(pod);
  if (seconds === undefined) return undefined;
  // A deletion that the machine knows may have a longer grace period.
  const graceSeconds = Math.max(
    pod.spec?.terminationGracePeriodSeconds ?? 0,
    pod.metadata.deletionGracePeriodSeconds ?? 0,
  );
  const marginSeconds = MARGIN_SECONDS + CLOCK_RATE_ERROR * seconds;
  return lastSpokeAtMs + Math.ceil((seconds + graceSeconds + marginSeconds) * 1_000);
}
