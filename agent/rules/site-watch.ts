/**
 * When a machine of a site is late for its relay, and what the relay may report (docs/witnesses.md). Pure. Times are
 * monotonic milliseconds of the relay.
 *
 *   beat ──── 2.5 s without one ────┐
 *   connection breaks ──── 1 s ─────┴─► late ──► probed ──► answers: as a beat
 *                                                       └─► silent: reported, and another machine is asked
 *
 * The relay is a machine with one network. Where many machines are late at once, that network is the likely cause, so
 * nothing is reported.
 */

/** Interval of beats on the connection, and of probes of a machine that is silent. Milliseconds. */
export const SITE_BEAT_MS = 2_000;
/** A beat that is missing for longer is late. Milliseconds. */
const LATE_AFTER_MS = SITE_BEAT_MS + 500;
/** After its connection broke, a machine has this long to connect again. Milliseconds. */
const RECONNECT_MS = 1_000;
/** Time for the answer to a probe. Milliseconds. */
export const PROBE_TIMEOUT_MS = 1_000;
/** The relay closes a connection without a beat after this time. Milliseconds. */
export const LINE_IDLE_MS = 15_000;
/** How long a silence is reported. Milliseconds. */
export const SILENCE_REPORTED_MS = 60_000;
/** A silent machine is probed until then: longer than it is reported, so its report ends by its time. Milliseconds. */
export const SILENCE_PROBED_MS = SILENCE_REPORTED_MS + 5_000;
/** A process that does not run for this long may have missed beats and answers. Milliseconds. */
export const HUNG_MS = 1_000;

export interface WatchedMachine {
  readonly name: string;
  readonly isConnected: boolean;
  /** Its last beat or answer. */
  readonly answeredAtMs: number;
  /** When its connection broke last. */
  readonly brokenAtMs: number;
  /** It said that it would be silent until then. */
  readonly excusedUntilMs: number;
  /**
   * It has answered a probe since it connected. A machine behind a firewall, or without a listener, is never reported:
   * its silence on one connection is one path.
   */
  readonly isProbeable: boolean;
  /** Since when it neither beats nor answers. */
  readonly silentSinceMs: number | undefined;
}

export const isExcused = ({ excusedUntilMs }: WatchedMachine, nowMs: number): boolean => nowMs < excusedUntilMs;

export function isLate(machine: WatchedMachine, nowMs: number): boolean {
  const { isConnected, answeredAtMs, brokenAtMs, excusedUntilMs } = machine;
  const fromMs = Math.max(answeredAtMs, excusedUntilMs);
  const isBroken = !isConnected && brokenAtMs >= fromMs;
  return nowMs >= Math.min(fromMs + LATE_AFTER_MS, isBroken ? brokenAtMs + RECONNECT_MS : Number.POSITIVE_INFINITY);
}

export type SiteView =
  /** The machines that are silent, sorted. */
  | { readonly kind: 'clear'; readonly silent: readonly string[] }
  /** More than a third of the site is late, this machine included in the site. */
  | { readonly kind: 'tooMany' }
  /** All other machines are silent: the relay itself is cut off. */
  | { readonly kind: 'cutOff' };

export function siteView(machines: Iterable<WatchedMachine>, nowMs: number): SiteView {
  const watched = [...machines].filter((each) => !isExcused(each, nowMs));
  const late = watched.filter((each) => isLate(each, nowMs));
  const silent = late.filter(({ silentSinceMs }) => silentSinceMs !== undefined);
  if (watched.length > 1 && silent.length === watched.length) return { kind: 'cutOff' };
  if (3 * late.length > watched.length + 1) return { kind: 'tooMany' };
  const reported = silent.filter(({ isProbeable }) => isProbeable);
  return { kind: 'clear', silent: reported.map(({ name }) => name).sort() };
}

/**
 * The machine to ask for a probe: the next one by name that can know. Undefined: there is none.
 *
 * @param previous the machine that was asked last
 */
export function nextWitness(machines: Iterable<WatchedMachine>, previous: string, nowMs: number): string | undefined {
  const names = [...machines].filter((each) => canWitness(each, nowMs)).map(({ name }) => name);
  names.sort();
  return names.find((name) => name > previous) ?? names[0];
}

/** A machine that is late itself is never asked, so the accused is not either. */
export const canWitness = (machine: WatchedMachine, nowMs: number): boolean =>
  machine.isConnected && !isExcused(machine, nowMs) && !isLate(machine, nowMs);
