/** Which machine of a site the hub switches off: its pods may then run elsewhere before their time is over. */

import { SILENT_MS } from './site-permits.ts';

/** A machine that obeys this hub. */
export interface SiteMachine {
  readonly name: string;
  /** When it last asked; monotonic milliseconds. Undefined: not since this process began. */
  readonly askedAtMs: number | undefined;
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

/** A machine asks each 10 to 15 s. Milliseconds. */
export const HEARD_MS = 20_000;

/** At least half of the machines have asked within HEARD_MS, at every look of a time. Monotonic milliseconds. */
export interface Hearing {
  readonly sinceMs: number;
  /** The last look. */
  readonly atMs: number;
}

/** After a look. One that is late begins anew: the process did not run, and no machine could ask. */
export function hearingAfter(
  before: Hearing | undefined,
  machines: readonly Pick<SiteMachine, 'askedAtMs'>[],
  nowMs: number,
): Hearing | undefined {
  const heard = machines.filter(({ askedAtMs }) => askedAtMs !== undefined && nowMs - askedAtMs < HEARD_MS);
  if (2 * heard.length < machines.length) return undefined;
  const goesOn = before !== undefined && nowMs - before.atMs < HEARD_MS;
  return { sinceMs: goesOn ? before.sinceMs : nowMs, atMs: nowMs };
}

/**
 * One machine at a time. When more machines are silent than ask, the network of the site or of the hub is the likelier
 * cause, and none is switched off. After such trouble they ask one after the other, so others must have asked this hub
 * for the whole time that makes one silent. One that the cluster sees is alive: it only does not reach the hub.
 */
export function machineToSwitchOff(
  machines: readonly SiteMachine[],
  hearing: Hearing | undefined,
  nowMs: number,
): string | undefined {
  const silent = machines.filter(({ isSilent }) => isSilent);
  if (hearing === undefined || nowMs - hearing.sinceMs < SILENT_MS) return undefined;
  if (2 * silent.length > machines.length) return undefined;
  const due = silent.filter(
    ({ isReady, holdsPods, triedAtMs }) =>
      holdsPods && !isReady && (triedAtMs === undefined || nowMs - triedAtMs >= SWITCH_AGAIN_MS),
  );
  // Who has waited longest: one that cannot be switched off does not keep others.
  return due.toSorted((a, b) => (a.triedAtMs ?? 0) - (b.triedAtMs ?? 0))[0]?.name;
}
