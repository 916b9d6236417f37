/**
 * When a machine of a site is late for its relay, and what the relay may report (docs/witnesses.md). Pure. Times are
 * monotonic milliseconds of the relay.
 *
 *   beat ──── 1.1 s without one ───┬─► overdue: the relay and another machine probe it at the same time
 *   connection breaks ──── 0.4 s ──┘          └─► answers the relay: as a beat
 *
 *   beat ──── 1.5 s without one ───┬─► late, and without an answer to the relay: silent. The relay reports it, and
 *   connection breaks ──── 1 s ────┘   confirms it to the other machine. That one reports it if it has no answer either
 *
 * The relay is a machine with one network. Where many machines are late at once, that network is the likely cause, so
 * nothing is reported.
 */

/** Interval of beats on the connection. Milliseconds. */
export const SITE_BEAT_MS = 1_000;
/** Without the next beat a machine is overdue after this time, and late after that one. Milliseconds. */
const OVERDUE_AFTER_MS = SITE_BEAT_MS + 100;
const LATE_AFTER_MS = SITE_BEAT_MS + 500;
/** The same after its connection broke. A machine connects again at once. Milliseconds. */
const RECONNECT_OVERDUE_MS = 400;
const RECONNECT_MS = 1_000;
/**
 * Time for the answer to a probe, on the network of one site. A lost SYN, or its lost answer, is repeated after one
 * second. A probe of less than that sees one of them, and a whole second would see no other. Lost data are repeated
 * after some 0.2 s. Milliseconds.
 */
export const PROBE_TIMEOUT_MS = 500;
/** Interval of probes of a machine that does not answer. Milliseconds. */
export const PROBE_EVERY_MS = 2_000;
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

/** Its beat is missing: it is time to probe it. */
export const isOverdue = (machine: WatchedMachine, nowMs: number): boolean =>
  isMissing(machine, nowMs, OVERDUE_AFTER_MS, RECONNECT_OVERDUE_MS);

/** Its beat is missing for so long that it may be reported. */
export const isLate = (machine: WatchedMachine, nowMs: number): boolean =>
  isMissing(machine, nowMs, LATE_AFTER_MS, RECONNECT_MS);

function isMissing(machine: WatchedMachine, nowMs: number, afterBeatMs: number, afterBreakMs: number): boolean {
  const { isConnected, answeredAtMs, brokenAtMs, excusedUntilMs } = machine;
  const fromMs = Math.max(answeredAtMs, excusedUntilMs);
  const isBroken = !isConnected && brokenAtMs >= fromMs;
  return nowMs >= Math.min(fromMs + afterBeatMs, isBroken ? brokenAtMs + afterBreakMs : Number.POSITIVE_INFINITY);
}

export type SiteView =
  /** The machines that are silent, and those to probe from elsewhere: also overdue ones. Sorted. */
  | { readonly kind: 'clear'; readonly silent: readonly string[]; readonly suspected: readonly string[] }
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
  const overdue = watched.filter((each) => isOverdue(each, nowMs));
  const suspected = 3 * overdue.length > watched.length + 1 ? silent : overdue;
  return { kind: 'clear', silent: reportable(silent), suspected: reportable(suspected) };
}

const reportable = (machines: readonly WatchedMachine[]): readonly string[] =>
  machines.flatMap(({ name, isProbeable }) => (isProbeable ? [name] : [])).sort();

/**
 * The machine to ask for a probe: the next one by name that can know. Undefined: there is none.
 *
 * @param previous the machine that was asked last
 */
export function nextWitness(machines: Iterable<WatchedMachine>, previous: string, nowMs: number): string | undefined {
  const names = [...machines]
    .filter((each) => canWitness(each, nowMs) && !isOverdue(each, nowMs))
    .map(({ name }) => name);
  names.sort();
  return names.find((name) => name > previous) ?? names[0];
}

/** A machine that is overdue is never asked, so the accused is not either. One that is late is replaced. */
export const canWitness = (machine: WatchedMachine, nowMs: number): boolean =>
  machine.isConnected && !isExcused(machine, nowMs) && !isLate(machine, nowMs);
