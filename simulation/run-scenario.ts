/** Runs one scenario on virtual time, instant by instant. The format defines the order within an instant. */

import { defined } from '../shared/defined.ts';
import { type FleetRecords, type FleetStore, fleetStore } from '../shared/fleet/fleet-store.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import type { Meter } from '../shared/observability/log.ts';
import { checkExpectation } from './check-expectation.ts';
import { createFleet, type Fleet } from './fleet.ts';
import type { RecordedStore } from './recorded-store.ts';
import { describeStep, evictPods, runStep } from './run-steps.ts';
import type { Scenario, Step } from './scenario.ts';
import { instanceOf } from './simulated-instance.ts';
import { type Actor, createTally } from './tally.ts';
import { changeLines, type TimelineEntry } from './timeline.ts';
import { createWorld, type World } from './world.ts';

export interface ScenarioFailure {
  readonly file: string;
  readonly line: number;
  /** From the start. */
  readonly atMs: number;
  /** `node a-3`, `step taint …`, `system`. */
  readonly subject: string;
  readonly field: string;
  readonly wanted: string;
  readonly found: string;
}

export interface ScenarioResult {
  readonly failures: readonly ScenarioFailure[];
  /** `expect` steps checked. */
  readonly expectations: number;
  readonly endMs: number;
}

export interface RunOptions {
  readonly store: RecordedStore;
  readonly seed: number;
  /** Instead of the scenario's. */
  readonly policy?: Policy;
  /** Called with the lines of each instant, in order. */
  readonly onEntries?: (entries: readonly TimelineEntry[]) => void;
  readonly meter?: Meter;
  /** Whether this tick's message is delivered a second time. Milliseconds from the start. */
  readonly isTickTwice?: (atMs: number) => boolean;
}

/** Instants in one story; a year of five-second ticks is six million. */
const INSTANTS_MAX = 20_000_000;

export async function runScenario(scenario: Scenario, options: RunOptions): Promise<ScenarioResult> {
  return await new ScenarioRun(scenario, options).run();
}

type ExpectStep = Extract<Step, { verb: 'expect' }>;

class ScenarioRun {
  readonly #scenario: Scenario;
  readonly #options: RunOptions;
  readonly #policy: Policy;
  readonly #world: World;
  readonly #fleet: Fleet;
  readonly #tally = createTally();
  readonly #recorded: FleetStore;
  readonly #failures: ScenarioFailure[] = [];
  readonly #periodMs: number;
  readonly #podGcMs: number;
  #entries: TimelineEntry[] = [];
  #records: FleetRecords | undefined;
  #down = false;
  /** At the last tick. */
  #wasDown = false;
  #expectations = 0;
  #nowMs: number;
  #nextTickMs: number;
  /** The evictor waits inside its slot for tokens of that slot: a rate above one a period is due between ticks. */
  #nextTokenMs = Number.POSITIVE_INFINITY;
  #nextStep = 0;
  /** Names and globs of nodes that a `drain` still evicts pods from. */
  #draining: readonly string[] = [];

  constructor(scenario: Scenario, options: RunOptions) {
    this.#scenario = scenario;
    this.#options = options;
    this.#policy = this.#options.policy ?? this.#scenario.policy;
    this.#world = createWorld({
      store: this.#options.store,
      policy: this.#policy,
      seed: this.#options.seed,
      startMs: this.#scenario.startMs,
      ...defined({ meter: this.#options.meter }),
    });
    this.#fleet = createFleet({
      specs: this.#scenario.machines,
      startMs: this.#scenario.startMs,
      endpoint: this.#world.endpoint,
      view: this.#world.view,
      setTime: (nowMs) => this.#world.setTime(nowMs),
      launch: (spec) => this.#world.cloud.put(instanceOf(spec, this.#world.clock.nowMs() - spec.ageMs)),
    });
    this.#recorded = fleetStore(this.#options.store.record);
    this.#periodMs = this.#policy.nodeMonitorPeriodSeconds * 1_000;
    this.#podGcMs = this.#policy.podGcPeriodSeconds * 1_000;
    this.#nowMs = this.#scenario.startMs;
    this.#nextTickMs = this.#scenario.startMs;
  }

  async run(): Promise<ScenarioResult> {
    const { startMs, steps, file } = this.#scenario;
    await this.#fleet.setUp();
    await this.#recordChanges('endpoint', true);
    // Before the first tick there is no earlier state to compare a change with.
    this.#records = undefined;
    for (let instants = 0; this.#nextStep < steps.length; instants += 1) {
      if (instants === INSTANTS_MAX) throw new RangeError(`more than ${INSTANTS_MAX} instants in ${file}`);
      await this.#runInstant(startMs + steps[this.#nextStep]!.atMs);
    }
    return { failures: this.#failures, expectations: this.#expectations, endMs: this.#nowMs - startMs };
  }

  /** Machines act, then the steps of the scenario, then the controllers; last the expectations are checked. */
  async #runInstant(nextStepAtMs: number): Promise<void> {
    this.#nowMs = Math.min(this.#nextTickMs, this.#nextTokenMs, this.#fleet.nextAtMs(), nextStepAtMs);
    this.#world.setTime(this.#nowMs);
    await this.#fleet.act(this.#nowMs);
    await this.#recordChanges('endpoint');
    const expected = await this.#runDueSteps();
    if (this.#draining.length > 0 && this.#nowMs === this.#nextTickMs) {
      this.#draining = await evictPods(this.#world.endpoint, this.#draining);
      await this.#recordChanges('endpoint');
    }
    await this.#runControllers();
    for (const step of expected) await this.#check(step);
    for (const error of this.#world.takeErrors()) {
      this.#fail({ line: 1, subject: 'system', field: '', wanted: 'no error', found: error });
    }
    if (this.#entries.length > 0) this.#options.onEntries?.(this.#entries);
    this.#entries = [];
    this.#world.forget();
  }

  /** Yields the expectations of this instant, which are checked after everything else. */
  async #runDueSteps(): Promise<readonly ExpectStep[]> {
    const { startMs, steps } = this.#scenario;
    const expected: ExpectStep[] = [];
    for (; this.#nextStep < steps.length; this.#nextStep += 1) {
      const step = steps[this.#nextStep]!;
      if (startMs + step.atMs !== this.#nowMs) break;
      if (step.verb === 'expect') expected.push(step);
      else await this.#runStep(step);
    }
    return expected;
  }

  async #runStep(step: Exclude<Step, ExpectStep>): Promise<void> {
    this.#addEntry('step', '', describeStep(step));
    const failure = await runStep(step, {
      endpoint: this.#world.endpoint,
      fleet: this.#fleet,
      nowMs: this.#nowMs,
      cloud: this.#world.cloud,
      drain: (names) => {
        this.#draining = [...this.#draining, ...names];
      },
      setControllersDown: (value) => {
        this.#down = value;
      },
    });
    if (failure !== undefined) {
      const wanted = step.refused === undefined ? 'to be done' : `refused with ${step.refused}`;
      this.#fail({ line: step.line, subject: describeStep(step), field: '', wanted, found: failure });
    }
    await this.#recordChanges('endpoint');
  }

  async #runControllers(): Promise<void> {
    if (this.#nowMs === this.#nextTickMs) await this.#tick();
    else if (this.#nowMs === this.#nextTokenMs) {
      const tokenAtMs = this.#down ? undefined : await this.#world.processQueuesBetweenTicks();
      this.#nextTokenMs = turnWithin(tokenAtMs, this.#nextTickMs);
    }
    if (!this.#down) await this.#world.streams.drain();
    await this.#recordChanges('controllers');
  }

  async #tick(): Promise<void> {
    const elapsedMs = this.#nowMs - this.#scenario.startMs;
    const podGc = elapsedMs % this.#podGcMs === 0;
    // A tick sees the changes of its instant and the lists that follow from them. After an outage of the controllers
    // the tick runs first, because it detects the outage.
    if (!this.#down && !this.#wasDown) await this.#world.streams.drain();
    this.#wasDown = this.#down;
    const tokenAtMs = this.#down ? undefined : await this.#world.tick({ podGc });
    this.#nextTokenMs = turnWithin(tokenAtMs, this.#nextTickMs + this.#periodMs);
    if (!this.#down && this.#options.isTickTwice?.(elapsedMs) === true) await this.#world.tick({ podGc });
    this.#nextTickMs += this.#periodMs;
  }

  async #check(step: ExpectStep): Promise<void> {
    this.#expectations += 1;
    const state = { items: this.#options.store.items, nowMs: this.#nowMs, tally: this.#tally };
    const mismatches = await checkExpectation(step.expectation, state);
    for (const mismatch of mismatches) this.#fail(mismatch);
    if (mismatches.length === 0) this.#addEntry('expect', '', `holds (line ${step.line})`);
  }

  #addEntry(kind: TimelineEntry['kind'], name: string, text: string): void {
    this.#entries.push({ atMs: this.#nowMs - this.#scenario.startMs, kind, name, text });
  }

  #fail(failure: Omit<ScenarioFailure, 'file' | 'atMs'>): void {
    this.#failures.push({ file: this.#scenario.file, atMs: this.#nowMs - this.#scenario.startMs, ...failure });
    const { subject, field, wanted, found } = failure;
    this.#addEntry('failed', subject, `${field === '' ? '' : `${field}: `}wanted ${wanted}, found ${found}`);
  }

  /** Reads the changes since the last call and writes them to the timeline. */
  async #recordChanges(actor: Actor, isSilent = false): Promise<void> {
    const changes = this.#world.view.refresh();
    const after = actor === 'controllers' || this.#records === undefined ? await this.#recorded.read() : this.#records;
    if (!isSilent) {
      this.#tally.count(changes, actor);
      for (const { kind, name, text } of changeLines(changes, {
        actor,
        nowMs: this.#nowMs,
        before: this.#records,
        after,
      })) {
        this.#addEntry(kind, name, text);
      }
    }
    this.#fleet.watch(changes, this.#nowMs);
    this.#records = after;
  }
}

/** One line: file, time, subject, wanted and found. */
export const describeFailure = (failure: ScenarioFailure, at: (milliseconds: number) => string): string => {
  const { file, line, atMs, subject, field, wanted, found } = failure;
  return `${file}:${line}: at ${at(atMs)}: ${subject}: ${field === '' ? '' : `${field}: `}wanted ${wanted}, found ${found}`;
};

/** A token of this slot is waited for, to the millisecond; a later one is the next tick's. */
function turnWithin(tokenAtMs: number | undefined, slotEndMs: number): number {
  if (tokenAtMs === undefined) return Number.POSITIVE_INFINITY;
  const atMs = Math.ceil(tokenAtMs);
  return atMs < slotEndMs ? atMs : Number.POSITIVE_INFINITY;
}
