/**
 * The machines that this one found silent on the network of its site, as it reports them with its heartbeats
 * (docs/witnesses.md). A change is sent at once; then each heartbeat repeats the report while it holds, for a minute. A
 * machine with a long interval sends heartbeats for it: the cluster forgets a report that is not repeated.
 */
import { REPORT_VALID_MS, silentMachinesText, type WitnessRole } from '../../shared/fleet/silent-machines.ts';
import type { AgentTime } from '../ports/time.ts';
import { SILENCE_REPORTED_MS } from '../rules/site-watch.ts';

/** Shortest time between two heartbeats that are sent because of a report. Milliseconds. */
const EXTRA_BEAT_EVERY_MS = 2_000;
/** A report is repeated after this time, whatever the interval is. Milliseconds. */
const REPEAT_AFTER_MS = (REPORT_VALID_MS * 2) / 3;

export interface SilenceReportDependencies {
  readonly role: WitnessRole;
  readonly time: Pick<AgentTime, 'monotonicMs' | 'sleep'>;
}

export class SilenceReport {
  readonly #dependencies: SilenceReportDependencies;
  /** By name: since when it is reported. Monotonic milliseconds. */
  #sinceMs: ReadonlyMap<string, number> = new Map();
  /** What the cluster knows; undefined: nothing. */
  #accepted: string | undefined;
  #acceptedAtMs = Number.NEGATIVE_INFINITY;
  /** Others may report this machine: its next heartbeat answers them. */
  #isAnswerDue = false;
  #changed = new AbortController();

  constructor(dependencies: SilenceReportDependencies) {
    this.#dependencies = dependencies;
  }

  /** @param names all machines that are silent now, sorted */
  update(names: readonly string[]): void {
    const nowMs = this.#dependencies.time.monotonicMs();
    const before = this.text();
    // A report that has ended by its time is not withdrawn.
    if (before === undefined) this.#accepted = undefined;
    this.#sinceMs = new Map(names.map((name) => [name, this.#sinceMs.get(name) ?? nowMs]));
    if (this.text() !== before) this.#changed.abort();
  }

  /** Sends a heartbeat at once: it voids what others report about this machine. */
  answer(): void {
    this.#isAnswerDue = true;
    this.#changed.abort();
  }

  /** The annotation of the next heartbeat; undefined: there is nothing to report. */
  text(): string | undefined {
    const { role, time } = this.#dependencies;
    const oldestMs = time.monotonicMs() - SILENCE_REPORTED_MS;
    const names = [...this.#sinceMs].filter(([, sinceMs]) => sinceMs > oldestMs).map(([name]) => name);
    if (names.length > 0) return silentMachinesText(role, names);
    const isWithdrawn = this.#accepted !== undefined && this.#sinceMs.size === 0;
    return isWithdrawn ? silentMachinesText(role, []) : undefined;
  }

  /** Whether the next heartbeat is sent at once: the cluster does not know what it reports, or forgets it soon. */
  isNews(): boolean {
    const text = this.text();
    return this.#isAnswerDue || (text !== undefined && text !== this.#accepted) || this.#isRepeatDue();
  }

  #isRepeatDue(): boolean {
    const text = this.text();
    const sinceMs = this.#dependencies.time.monotonicMs() - this.#acceptedAtMs;
    return text !== undefined && text === this.#accepted && sinceMs >= REPEAT_AFTER_MS;
  }

  /** Aborted by the next change. */
  changed(): AbortSignal {
    return this.#changed.signal;
  }

  /** A heartbeat with this annotation was accepted. */
  accepted(text: string | undefined): void {
    this.#isAnswerDue = false;
    this.#acceptedAtMs = this.#dependencies.time.monotonicMs();
    const isWithdrawal = text === silentMachinesText(this.#dependencies.role, []);
    this.#accepted = isWithdrawal ? undefined : text;
  }

  /** Sends a heartbeat after each change, and to repeat a report, until stopped. */
  async run(beatNow: () => void, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const over = AbortSignal.any([stop, this.#changed.signal]);
      if (this.text() === undefined) await untilAborted(over);
      else await this.#dependencies.time.sleep(EXTRA_BEAT_EVERY_MS, over);
      if (stop.aborted) return;
      const isChanged = this.#changed.signal.aborted;
      if (isChanged) this.#changed = new AbortController();
      if (isChanged ? !this.isNews() : !this.#isRepeatDue()) continue;
      beatNow();
      await this.#dependencies.time.sleep(EXTRA_BEAT_EVERY_MS, stop);
    }
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
