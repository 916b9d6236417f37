/** Which machine of a site the hub switches off: its pods may then run elsewhere before their time is over. */

/** A machine that obeys this hub. */
export interface SiteMachine {
  readonly name: string;
  /** It has not asked for its permits. */
  readonly isSilent: boolean;
  /** The cluster has it as ready, by a copy that is not old. */
  readonly isReady: boolean;
  /** It may run pods, as far as the hub knows. */
  readonly holdsPods: boolean;
  /** When the switch was last asked for it; monotonic milliseconds. */
  readonly triedAtMs: number | undefined;
}

/** Between two attempts for one machine. Milliseconds. */
export const SWITCH_AGAIN_MS = 60_000;

/**
 * One machine at a time. When more machines are silent than ask, the network of the site or of the hub is the likelier
 * cause, and none is switched off. One that the cluster sees is alive: it only does not reach the hub.
 */
export function machineToSwitchOff(machines: readonly SiteMachine[], nowMs: number): string | undefined {
  const silent = machines.filter(({ isSilent }) => isSilent);
  if (2 * silent.length > machines.length) return undefined;
  const due = silent.filter(
    ({ isReady, holdsPods, triedAtMs }) =>
      holdsPods && !isReady && (triedAtMs === undefined || nowMs - triedAtMs >= SWITCH_AGAIN_MS),
  );
  // Who has waited longest: one that cannot be switched off does not keep others.
  return due.toSorted((a, b) => (a.triedAtMs ?? 0) - (b.triedAtMs ?? 0))[0]?.name;
}
