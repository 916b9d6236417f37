/** A machine of a site in false marks with witnesses (faulty-site.ts), as itself and the cluster know it. */
import { SILENCE_REPORTED_MS, type WatchedMachine } from '../agent/rules/site-watch.ts';
import { silentMachinesText, type WitnessRole } from '../shared/fleet/silent-machines.ts';

/** A heartbeat on its way. True times, milliseconds. */
export interface SentBeat {
  readonly storedAtMs: number;
  readonly answeredAtMs: number;
  /** The report that it carries. */
  readonly text: string | undefined;
  /** It is acknowledged by a relay that dropped it. */
  readonly isDropped: boolean;
  readonly isRelayed: boolean;
}

export class SiteMachine {
  readonly name: string;
  readonly index: number;
  readonly role: WitnessRole;
  isOn = true;
  /** What it sends on the network of the site is lost on the way to no machine, to the relay, or to all of them. */
  cut: 'none' | 'relay' | 'all' = 'none';
  /** It does not receive what the relay sends. */
  isDeaf = false;
  reachesCluster = true;
  /** Since its last stored heartbeat it was off, cut off from the cluster, or its relay dropped a heartbeat. */
  wasAway = false;

  /** The next attempt to send a heartbeat begins. */
  nextAtMs: number;
  sent: SentBeat | undefined;
  failures = 0;
  /** Begin of the last accepted heartbeat. */
  acceptedFromMs: number;
  relayClosedUntilMs = 0;
  checkAtMs = 0;
  /** Without the relay it sends a heartbeat each 4 s until then. */
  answersUntilMs = 0;
  isAnswerDue = false;
  urgedAtMs = Number.NEGATIVE_INFINITY;

  /** True times of the last two stored heartbeats, and their receipt times. */
  storedAtMs: number;
  receivedAtMs: number;
  earlier: { storedAtMs: number; receivedAtMs: number };

  /** By name: since when this machine reports it. */
  readonly #sinceMs = new Map<string, number>();
  #accepted: string | undefined;

  constructor(index: number, name: string, role: WitnessRole, nowMs: number, nextAtMs: number) {
    this.index = index;
    this.name = name;
    this.role = role;
    this.nextAtMs = nextAtMs;
    this.acceptedFromMs = nowMs;
    this.storedAtMs = nowMs;
    this.receivedAtMs = nowMs;
    this.earlier = { storedAtMs: nowMs, receivedAtMs: nowMs };
  }

  get isReporting(): boolean {
    return this.#accepted !== undefined || this.#sinceMs.size > 0;
  }

  /** Returns whether something is new. As agent/app/silence-report.ts. */
  report(names: readonly string[], nowMs: number): boolean {
    const before = this.text(nowMs);
    // A report that has ended by its time is not withdrawn.
    if (before === undefined) this.#accepted = undefined;
    for (const name of this.#sinceMs.keys()) if (!names.includes(name)) this.#sinceMs.delete(name);
    for (const name of names) if (!this.#sinceMs.has(name)) this.#sinceMs.set(name, nowMs);
    return this.isNews(nowMs);
  }

  reported(): readonly string[] {
    return [...this.#sinceMs.keys()];
  }

  text(nowMs: number): string | undefined {
    if (!this.isReporting) return undefined;
    const names = [...this.#sinceMs]
      .filter(([, sinceMs]) => sinceMs > nowMs - SILENCE_REPORTED_MS)
      .map(([name]) => name);
    if (names.length > 0) return silentMachinesText(this.role, names);
    return this.#accepted !== undefined && this.#sinceMs.size === 0 ? silentMachinesText(this.role, []) : undefined;
  }

  isNews(nowMs: number): boolean {
    const text = this.text(nowMs);
    return this.isAnswerDue || (text !== undefined && text !== this.#accepted);
  }

  accepted(text: string | undefined): void {
    this.isAnswerDue = false;
    this.#accepted = text === silentMachinesText(this.role, []) ? undefined : text;
  }

  /** A new process knows no report. */
  restart(): void {
    this.#sinceMs.clear();
    this.#accepted = undefined;
    this.isAnswerDue = false;
    this.answersUntilMs = 0;
    this.failures = 0;
  }
}

/** What a relay knows of one machine: the record of agent/rules/site-watch.ts. */
export type Watched = { -readonly [Field in keyof WatchedMachine]: WatchedMachine[Field] };
