/**
 * The wait before a restart of a container. Source: upstream pkg/kubelet/kubelet.go (MaxContainerBackOff,
 * backOffPeriod) and client-go flowcontrol/backoff.go. The first restart is immediate, the next ones follow after 10 s,
 * 20 s … 5 min. A run of 10 minutes resets the back-off.
 */
export const BACK_OFF_FIRST_MS = 10_000;
const BACK_OFF_MAX_MS = 300_000;
const BACK_OFF_RESET_AFTER_MS = 600_000;

/** Wait that applied to the last restart; undefined before the first one. Milliseconds. */
export type BackOff = number | undefined;

/** The wait before the next start of a container that ran for this time. Milliseconds. */
export function nextBackOff(last: BackOff, ranMs: number): number {
  if (last === undefined || ranMs >= BACK_OFF_RESET_AFTER_MS) return 0;
  return last === 0 ? BACK_OFF_FIRST_MS : Math.min(last * 2, BACK_OFF_MAX_MS);
}
