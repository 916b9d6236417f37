/**
 * When a container that ended is started again. Source: upstream pkg/kubelet/kubelet.go (MaxContainerBackOff,
 * backOffPeriod) and client-go flowcontrol/backoff.go: the first restart comes at once, the next ones after 10 s, 20 s …
 * 5 min since the last end; a container that ran for 10 minutes begins anew.
 */
export const BACK_OFF_FIRST_MS = 10_000;
const BACK_OFF_MAX_MS = 300_000;
const BACK_OFF_RESET_AFTER_MS = 600_000;

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** Wait that applied to the last restart; undefined before the first one. Milliseconds. */
export type BackOff = number | undefined;

/** Whether an ended container runs again. */
export function restarts(policy: RestartPolicy, exitCode: number): boolean {
  if (policy === 'Always') return true;
  return policy === 'OnFailure' && exitCode !== 0;
}

/** The wait from its end to its next start, for a container that ran so long. Milliseconds. */
export function nextBackOff(last: BackOff, ranMs: number): number {
  if (last === undefined || ranMs >= BACK_OFF_RESET_AFTER_MS) return 0;
  return last === 0 ? BACK_OFF_FIRST_MS : Math.min(last * 2, BACK_OFF_MAX_MS);
}
