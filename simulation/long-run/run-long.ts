/**
 * Thousands of machines for many hours, under faults of whatever starts ticks. Chain, claim, gate, rule and marks of
 * node-monitor are the real ones. The heartbeats in their tables are a closed form (fleet-tables.ts). Every tick evaluates
 * every node: no evaluation is left out, so none can hide a false mark.
 *
 * Not part of it: the API, streams, and the functions that follow node-monitor. `npm run sim` has those.
 */
import { fleetControllers } from '../../shared/controllers/index.ts';
import { defaultPolicy, type Policy } from '../../shared/domain/policy.ts';
import type { ItemStore } from '../../shared/ports/item-store.ts';
import type { Log } from '../../shared/ports/log.ts';
import type { Probe } from '../../shared/ports/probe.ts';
import { type FaultName, type FaultPlan, faultPlan } from '../faults/catalogue.ts';
import { faultyStore } from '../faults/faulty-store.ts';
import { type FaultyTicks, faultyTicks } from '../faults/faulty-ticks.ts';
import { type Functions, lambdaFunctions, type Process, type Program } from '../faults/processes.ts';
import type { RecentChanges } from '../recent-changes.ts';
import { CLOCK_STEP_MAX_MS } from '../run-episodes.ts';
import { hashOf, seededFraction, seededUuid } from '../seeded-random.ts';
import { type VirtualTime, virtualTime } from '../virtual-time.ts';
import { ClockSteps } from './clock-steps.ts';
import { EXPIRE_EVERY_MS, FleetTables } from './fleet-tables.ts';
import { Heartbeats } from './heartbeats.ts';
import { type LongLaws, longLaws } from './long-laws.ts';
import { type LongResult, longResult } from './long-result.ts';
import { runSilences } from './silences.ts';

const START_MS = Date.UTC(2026, 0, 1);
/** One way of a probe, there and back. Milliseconds. */
const PROBE_MIN_MS = 10;
const PROBE_MAX_MS = 80;

/** Faults of a long run: of schedules, messages, processes, tables, clocks and the network. */
export const LONG_FAULTS = [
  'scheduleLate',
  'scheduleMissing',
  'scheduleTwice',
  'lostTicks',
  'lateTicks',
  'twice',
  'atOnce',
  'tickOutage',
  'throttledInvocation',
  'kill',
  'freeze',
  'restart',
  'skew',
  'clockJump',
  'throttle',
  'timeout',
  'resend',
  'contention',
  'slowStore',
  'staleReads',
  'apiOutage',
  'lostBeats',
  'lateBeats',
] as const satisfies readonly FaultName[];
export type LongFault = (typeof LONG_FAULTS)[number];

export interface LongOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly hours: number;
  /** Default: those of the seed (`longFaultsOf`). */
  readonly faults?: readonly LongFault[];
  /** A bug to plant: the laws must report it. */
  readonly plant?: {
    readonly policy?: Partial<Policy>;
    readonly items?: (items: ItemStore) => ItemStore;
  };
}

/**
 * Odd seeds have all faults, several at a time. Even seeds have one fault alone, in every storm: its figures are then its
 * own.
 */
export const longFaultsOf = (seed: number): readonly LongFault[] =>
  seed % 2 === 1 ? LONG_FAULTS : [LONG_FAULTS[(seed / 2) % LONG_FAULTS.length]!];

/** Mean number of faults in one storm, out of the catalogue: four of those above; or each storm has the one. */
const FAULTS_A_STORM = { all: 6, one: 36 };

interface LongSetup {
  readonly options: LongOptions;
  readonly policy: Policy;
  readonly time: VirtualTime;
  readonly endMs: number;
  readonly plan: FaultPlan;
  readonly random: (purpose: string) => () => number;
  readonly clock: ClockSteps;
  readonly heartbeats: Heartbeats;
}

export async function runLong(options: LongOptions): Promise<LongResult> {
  const setup = setUp(options);
  const { time, endMs, plan, heartbeats } = setup;
  const startedMs = process.cpuUsage();
  const laws: LongLaws = longLaws({ ...setup, startMs: START_MS });
  const tables = new FleetTables({
    nodes: options.nodes,
    fraction: setup.random('fleet'),
    ...{ time, plan, heartbeats },
    onMarked: (node) => {
      laws.onMarked(node);
      silences.onMarked(node);
    },
    onState: laws.onState,
  });
  await tables.registerAll();
  const functions = startTicks(setup, tables, laws);
  stepClocks(setup, functions);
  restartProcesses(setup, functions);
  const silences = runSilences({ ...setup, startMs: START_MS, tables, laws, nodes: options.nodes });
  expireItems(setup, tables);
  await time.run(endMs, () => false);
  const { user, system } = process.cpuUsage(startedMs);
  return longResult({
    options,
    injected: { ...plan.counts, ...heartbeats.countStruck(endMs) },
    tally: laws.tally(),
    rowsRead: tables.rowsRead,
    faults: options.faults ?? longFaultsOf(options.seed),
    cpuSeconds: (user + system) / 1e6,
  });
}

function setUp(options: LongOptions): LongSetup {
  const { seed, nodes, hours } = options;
  const faults = options.faults ?? longFaultsOf(seed);
  const random = (purpose: string): (() => number) => seededFraction(hashOf(`${seed} long ${purpose}`));
  const time = virtualTime(START_MS);
  const endMs = START_MS + hours * 3_600_000;
  const plan = faultPlan({
    ...{ seed, startMs: START_MS, endMs, faults, nowMs: time.nowMs },
    faultsAStorm: faults.length === 1 ? FAULTS_A_STORM.one : FAULTS_A_STORM.all,
  });
  const clock = new ClockSteps();
  const heartbeats = new Heartbeats({
    ...{ nodes, seed, plan, startMs: START_MS },
    intervalMs: defaultPolicy.beatIntervalSeconds * 1_000,
    clockAheadMs: (atMs) => clock.aheadMs(atMs),
  });
  return { options, policy: defaultPolicy, time, endMs, plan, random, clock, heartbeats };
}

function startTicks(setup: LongSetup, tables: FleetTables, laws: LongLaws): Functions {
  const { time, plan, random, policy, options } = setup;
  const ticks = faultyTicks({
    ...{ time, plan, policy, startMs: START_MS },
    fraction: random('ticks'),
    onFault: (_, faults) => laws.onFault(faults),
    onReport: laws.onReport,
    onSent: laws.onSent,
  });
  const functions = lambdaFunctions({
    ...{ time, plan },
    fraction: random('processes'),
    policy: { ...policy, ...options.plant?.policy },
    compose: composition(setup, tables, { ticks, laws }),
  });
  ticks.start(functions);
  return functions;
}

const noop = (): void => undefined;

/** The program of a process: node-monitor alone does something. */
function composition(
  { time, plan, random, options }: LongSetup,
  tables: FleetTables,
  { ticks, laws }: { readonly ticks: FaultyTicks; readonly laws: LongLaws },
): (process: Process) => Program {
  const fraction = random('code');
  const calls = random('calls');
  const source = { fraction, uuid: () => seededUuid(fraction) };
  const log: Log = {
    debug: noop,
    info: noop,
    warn: noop,
    error: (message, fields) => laws.onFault([fields?.['error'] ?? new Error(message)]),
  };
  return (process) => {
    const faulty = faultyStore(process, { tables, recent: NO_CHANGES, time, plan, fraction: calls, onEffect: noop });
    const items: ItemStore = {
      ...faulty,
      // The tables show what lags behind themselves.
      scan: (request) => faulty.scan({ ...request, consistent: true }),
    };
    const controllers = fleetControllers({
      items: options.plant?.items?.(items) ?? items,
      clock: process.clock,
      random: source,
      policy: process.policy,
      log,
      meter: { add: noop },
      probe: probeOver(time, plan, calls),
      tickQueue: ticks.queueOf(process),
      waker: ticks.wakerOf(process),
      pause: (milliseconds) => time.sleep(milliseconds),
    });
    const idle = async () => ({ kind: 'idle' });
    return {
      clock: process.clock,
      controllers: {
        ...controllers,
        ticks: { ...controllers.ticks, evictor: idle, 'cloud-node': idle, 'pod-gc': idle },
      },
      get endpoint(): never {
        throw new Error('a long run has no endpoint');
      },
    };
  };
}

const NO_CHANGES: RecentChanges = { take: () => [], since: () => [], partitions: () => [] };

/** Fails while the endpoint is out, as heartbeats do. */
const probeOver = (time: VirtualTime, plan: FaultPlan, fraction: () => number): Probe => ({
  async beat() {
    await time.sleep(PROBE_MIN_MS + fraction() * (PROBE_MAX_MS - PROBE_MIN_MS));
    if (plan.severity('apiOutage') === 0) return { kind: 'accepted' };
    plan.count('apiOutage');
    return { kind: 'failed', reason: 'the endpoint is out' };
  },
});

function stepClocks({ time, plan, random, clock }: LongSetup, functions: Functions): void {
  const shape = random('steps');
  for (const { fromMs } of plan.episodes('clockJump')) {
    time.after(fromMs - START_MS, () => {
      plan.count('clockJump');
      functions.stepOneClock();
      if (shape() < 0.5) return;
      functions.clockAheadMs = Math.round((2 * shape() - 1) * CLOCK_STEP_MAX_MS);
      clock.add(time.nowMs(), functions.clockAheadMs);
    });
  }
}

function restartProcesses({ time, plan }: LongSetup, functions: Functions): void {
  for (const { fromMs, untilMs } of plan.episodes('restart')) {
    for (const atMs of [fromMs, (fromMs + untilMs) / 2]) {
      time.after(atMs - START_MS, () => {
        plan.count('restart');
        functions.restart();
      });
    }
  }
}

function expireItems({ time }: LongSetup, tables: FleetTables): void {
  const expire = (): void => {
    tables.expire();
    time.after(EXPIRE_EVERY_MS, expire);
  };
  time.after(EXPIRE_EVERY_MS, expire);
}
