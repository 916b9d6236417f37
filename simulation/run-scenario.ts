/** Runs one scenario on virtual time: from instant to instant, in each of them in the order that the format gives. */

import type { Policy } from '../shared/domain/policy.ts';
import type { Meter } from '../shared/ports/log.ts';
import { type FleetRecords, fleetStore } from '../shared/store/fleet-store.ts';
import { checkExpectation } from './check-expectation.ts';
import { createFleet } from './fleet.ts';
import type { RecordedStore } from './recorded-store.ts';
import { runStep, sayStep } from './run-steps.ts';
import type { Scenario, Step } from './scenario.ts';
import { instanceOf } from './simulated-instance.ts';
import { type Actor, createTally } from './tally.ts';
import { changeLines, type TimelineEntry } from './timeline.ts';
import { createWorld } from './world.ts';

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
  /** Told of the lines of each instant, in order. */
  readonly onEntries?: (entries: readonly TimelineEntry[]) => void;
  readonly meter?: Meter;
  /** Whether this tick's message is delivered a second time. Milliseconds from the start. */
  readonly isTickTwice?: (atMs: number) => boolean;
}

/** Instants in one story; a year of five-second ticks is six million. */
const INSTANTS_MAX = 20_000_000;

export async function runScenario(scenario: Scenario, options: RunOptions): Promise<ScenarioResult> {
  const { file, startMs, machines, steps } = scenario;
  const policy = options.policy ?? scenario.policy;
  const world = createWorld({
    store: options.store,
    policy,
    seed: options.seed,
    startMs,
    ...(options.meter === undefined ? {} : { meter: options.meter }),
  });
  const { view, streams, endpoint } = world;
  const fleet = createFleet({
    specs: machines,
    startMs,
    endpoint,
    view,
    setTime: world.setTime,
    launch: (spec) => world.cloud.put(instanceOf(spec, world.clock.nowMs() - spec.ageMs)),
  });
  const tally = createTally();
  const recorded = fleetStore(options.store.record);
  const failures: ScenarioFailure[] = [];
  const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
  const podGcMs = policy.podGcPeriodSeconds * 1_000;
  let entries: TimelineEntry[] = [];
  let records: FleetRecords | undefined;
  let down = false;
  /** At the last tick. */
  let wasDown = false;
  let expectations = 0;
  let nowMs = startMs;

  const tell = (kind: TimelineEntry['kind'], name: string, text: string): void => {
    entries.push({ atMs: nowMs - startMs, kind, name, text });
  };
  const fail = (failure: Omit<ScenarioFailure, 'file' | 'atMs'>): void => {
    failures.push({ file, atMs: nowMs - startMs, ...failure });
    const { subject, field, wanted, found } = failure;
    tell('failed', subject, `${field === '' ? '' : `${field}: `}wanted ${wanted}, found ${found}`);
  };
  /** Takes in what was written, by whom, and tells it. */
  const lookAround = async (actor: Actor, isSilent = false): Promise<void> => {
    const changes = view.refresh();
    const after = actor === 'controllers' || records === undefined ? await recorded.read() : records;
    if (!isSilent) {
      tally.count(changes, actor);
      for (const { kind, name, text } of changeLines(changes, { actor, nowMs, before: records, after })) {
        tell(kind, name, text);
      }
    }
    fleet.watch(changes, nowMs);
    records = after;
  };

  await fleet.setUp();
  await lookAround('endpoint', true);
  // Before the first tick there is nothing that a change could be told against.
  records = undefined;

  let nextTickMs = startMs;
  /** The evictor waits inside its slot for tokens of that slot: a rate above one a period is due between ticks. */
  let nextTokenMs = Number.POSITIVE_INFINITY;
  let nextStep = 0;
  for (let instants = 0; nextStep < steps.length; instants += 1) {
    if (instants === INSTANTS_MAX) throw new RangeError(`more than ${INSTANTS_MAX} instants in ${file}`);
    nowMs = Math.min(nextTickMs, nextTokenMs, fleet.nextAtMs(), startMs + steps[nextStep]!.atMs);
    world.setTime(nowMs);

    await fleet.act(nowMs);
    await lookAround('endpoint');

    const expected: Extract<Step, { verb: 'expect' }>[] = [];
    for (; nextStep < steps.length && startMs + steps[nextStep]!.atMs === nowMs; nextStep += 1) {
      const step = steps[nextStep]!;
      if (step.verb === 'expect') {
        expected.push(step);
        continue;
      }
      tell('step', '', sayStep(step));
      const failure = await runStep(step, {
        endpoint,
        fleet,
        nowMs,
        cloud: world.cloud,
        setControllersDown: (value) => {
          down = value;
        },
      });
      if (failure !== undefined) {
        const wanted = step.refused === undefined ? 'to be done' : `refused with ${step.refused}`;
        fail({ line: step.line, subject: sayStep(step), field: '', wanted, found: failure });
      }
      await lookAround('endpoint');
    }

    if (nowMs === nextTickMs) {
      const podGc = (nowMs - startMs) % podGcMs === 0;
      // What was done in this instant is seen by its tick, lists that follow from changes included. After an outage of ours
      // the tick comes first: it is what finds the outage out.
      if (!down && !wasDown) await streams.drain();
      wasDown = down;
      const tokenAtMs = down ? undefined : await world.tick({ podGc });
      nextTokenMs = turnWithin(tokenAtMs, nextTickMs + periodMs);
      if (!down && options.isTickTwice?.(nowMs - startMs) === true) await world.tick({ podGc });
      nextTickMs += periodMs;
    } else if (nowMs === nextTokenMs) {
      nextTokenMs = turnWithin(down ? undefined : await world.processQueuesBetweenTicks(), nextTickMs);
    }
    if (!down) await streams.drain();
    await lookAround('controllers');

    for (const step of expected) {
      expectations += 1;
      const state = { items: options.store.items, nowMs, tally };
      const mismatches = await checkExpectation(step.expectation, state);
      for (const mismatch of mismatches) fail(mismatch);
      if (mismatches.length === 0) tell('expect', '', `holds (line ${step.line})`);
    }
    for (const error of world.takeErrors()) {
      fail({ line: 1, subject: 'system', field: '', wanted: 'no error', found: error });
    }
    if (entries.length > 0) options.onEntries?.(entries);
    entries = [];
    world.forget();
  }
  return { failures, expectations, endMs: nowMs - startMs };
}

/** One line: file, time, of whom, wanted and found. */
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
