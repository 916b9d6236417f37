/**
 * Thousands of machines for many hours, under faults of whatever starts ticks. Chain, claim, gate, rule and marks of
 * node-monitor are the real ones. The heartbeats in their tables are a closed form (fleet-tables.ts). Every tick
 * evaluates every node: no evaluation is left out, so none can hide a false mark.
 *
 * Not part of it: the API, streams, and the functions that follow node-monitor. `npm run sim` has those.
 */

import type { Probe } from '../../functions/node-monitor/probes.ts';
import { fleetControllers } from '../../server/fleet-controllers.ts';
import { DEFAULT_PROFILE, policyOf, profileNameOf } from '../../shared/fleet/nodes/node-profile.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { type FaultName, type FaultPlan, faultPlan } from '../faults/catalogue.ts';
import { faultyStore } from '../faults/faulty-store.ts';
import { type FaultyTicks, faultyTicks } from '../faults/faulty-ticks.ts';
import { type Functions, lambdaFunctions, type Process, type Program } from '../faults/processes.ts';
import type { RecentChanges } from '../recent-changes.ts';
import { CLOCK_STEP_MAX_MS } from '../run-episodes.ts';
import { hashOf, seededFraction, seededUuid } from '../seeded-random.ts';
import { SITE_TROUBLES, type SiteTrouble } from '../site-witnesses.ts';
import { type VirtualTime, virtualTime } from '../virtual-time.ts';
import { ClockSteps } from './clock-steps.ts';
import { DeployedPolicies, rollPolicies, SETTLED_AFTER_MS } from './deployed-policies.ts';
import { EXPIRE_EVERY_MS, FleetTables, nameOf, nodeNamed } from './fleet-tables.ts';
import { type FollowedIntervals, followedIntervals } from './followed-intervals.ts';
import { Heartbeats } from './heartbeats.ts';
import { changeLabels } from './label-changes.ts';
import { type LongLaws, type LongTally, longLaws, type WrongMark } from './long-laws.ts';
import { type LongResult, longResult } from './long-result.ts';
import { firstKindOf, KINDS, type Kind, labelsOf, MIXED_POLICIES, policyOfKind } from './mixed-fleet.ts';
import { makePromises } from './promises.ts';
import { runSilences, type Silences } from './silences.ts';
import { SiteReports, siteOf } from './site-reports.ts';

/** Of a fleet without sites. */
const ZONES = 4;
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

export type FleetKind = 'alike' | 'mixed' | 'sites';

export interface LongOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly hours: number;
  /** Default: those of the seed (`longFaultsOf`). */
  readonly faults?: readonly LongFault[];
  /**
   * alike: every machine has the times of the policy. mixed: three kinds of machines, changes of labels and policies,
   * promises of silence, and machines that need a while until they are Ready. sites: machines alike, which report
   * each other in their sites. Default: alike.
   */
  readonly fleet?: FleetKind;
  /** What befalls sites. Default: everything. */
  readonly troubles?: readonly SiteTrouble[];
  /** The policies of a mixed fleet. Default: MIXED_POLICIES. */
  readonly policies?: readonly Policy[];
  readonly onWrongMark?: (mark: WrongMark) => void;
  /** The run ends as soon as this is true. Default: after its hours. */
  readonly until?: (current: LongTally) => boolean;
  /** A bug to plant: the laws must report it. */
  readonly plant?: {
    readonly policy?: Partial<Policy>;
    readonly items?: (items: ItemStore) => ItemStore;
  };
}

/**
 * Odd seeds have all faults, several at a time. Even seeds have one fault alone, in every storm: its figures are then
 * its own.
 */
export const longFaultsOf = (seed: number): readonly LongFault[] =>
  seed % 2 === 1 ? LONG_FAULTS : [LONG_FAULTS[(seed / 2) % LONG_FAULTS.length]!];

/** Mean number of faults in one storm, out of the catalogue: four of those above; or each storm has the one. */
const FAULTS_A_STORM = { all: 6, one: 36 };

interface LongSetup {
  readonly options: LongOptions;
  readonly isMixed: boolean;
  readonly policies: DeployedPolicies;
  readonly kindOf: (node: number) => Kind;
  readonly kinds: Kind[];
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
  const { onWrongMark, nodes } = options;
  const laws = longLaws({
    ...{ ...setup, startMs: START_MS, nodes, onWrongMark },
    accusedSinceMs: (node, afterMs) => sites?.accusedSinceMs(node, afterMs),
  });
  const tables = new FleetTables({
    nodes,
    fraction: setup.random('fleet'),
    ...{ time, plan, heartbeats },
    onMarked: (node) => {
      laws.onMarked(node);
      silences.onMarked(node);
    },
    onState: laws.onState,
    onReplaced: laws.onReplaced,
    onProfile: (node) => {
      laws.onProfile(node);
      intervals.onTimesChanged(node);
    },
    kindOf: setup.kindOf,
    zoneOf: options.fleet === 'sites' ? siteOf : (node) => `zone-${node % ZONES}`,
    policy: () => setup.policies.api,
  });
  await tables.registerAll();
  const sites = options.fleet === 'sites' ? startSites(setup, tables) : undefined;
  const intervals = followIntervals(setup, tables);
  const functions = startTicks(setup, tables, laws);
  stepClocks(setup, functions);
  restartProcesses(setup, functions);
  const silences = startSilences(setup, tables, laws, sites);
  if (setup.isMixed) startPeople(setup, { tables, laws, intervals, functions, silences });
  expireItems(setup, tables);
  const { until = () => false } = options;
  await time.run(endMs, () => until(laws.current()));
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
  const isMixed = options.fleet === 'mixed';
  const faults = options.faults ?? longFaultsOf(seed);
  const random = (purpose: string): (() => number) => seededFraction(hashOf(`${seed} long ${purpose}`));
  const time = virtualTime(START_MS);
  const endMs = START_MS + hours * 3_600_000;
  const plan = faultPlan({
    ...{ seed, startMs: START_MS, endMs, faults, nowMs: time.nowMs },
    faultsAStorm: faults.length === 1 ? FAULTS_A_STORM.one : FAULTS_A_STORM.all,
  });
  const clock = new ClockSteps();
  const policies = new DeployedPolicies(time, isMixed ? policiesOf(options)[0]! : defaultPolicy);
  const kinds = Array.from({ length: nodes }, (_, node): Kind => (isMixed ? firstKindOf(node) : DEFAULT_PROFILE));
  const kindOf = (node: number): Kind => kinds[node]!;
  const heartbeats = new Heartbeats({
    ...{ nodes, seed, plan, startMs: START_MS },
    intervalMsOf: (node) => 1_000 * policyOfKind(policies.current, kindOf(node)).beatIntervalSeconds,
    clockAheadMs: (atMs) => clock.aheadMs(atMs),
  });
  return { options, isMixed, policies, kindOf, kinds, time, endMs, plan, random, clock, heartbeats };
}

const policiesOf = ({ policies = MIXED_POLICIES }: LongOptions): readonly Policy[] => policies;

function followIntervals(setup: LongSetup, tables: FleetTables): FollowedIntervals {
  const { time, heartbeats, policies, options } = setup;
  return followedIntervals({
    ...{ time, heartbeats, nodes: options.nodes },
    answeredTo: (node) => {
      const { beatIntervalSeconds, leaseDurationSeconds } = policyOf(policies.heartbeat, tables.profileOf(node));
      return { intervalMs: 1_000 * beatIntervalSeconds, durationSeconds: leaseDurationSeconds };
    },
  });
}

function startSites(
  { time, plan, random, heartbeats, options, policies }: LongSetup,
  tables: FleetTables,
): SiteReports {
  return new SiteReports({
    ...{ time, plan, random, nodes: options.nodes, items: tables, nameOf, nodeOf: nodeNamed },
    intervalMs: 1_000 * policies.current.beatIntervalSeconds,
    troubles: options.troubles ?? (Object.keys(SITE_TROUBLES) as SiteTrouble[]),
    receiptMs: (node, atMs) => heartbeats.receiptMs(node, atMs),
    isSilent: (node) => heartbeats.isSilent(node, time.nowMs()),
  });
}

function startSilences(
  setup: LongSetup,
  tables: FleetTables,
  laws: LongLaws,
  sites: SiteReports | undefined,
): Silences {
  const { policies, kindOf, isMixed, options } = setup;
  const all = isMixed ? policiesOf(options) : [policies.current];
  const longestSeconds = Math.max(
    ...all.flatMap((policy) => KINDS.map((kind) => policyOfKind(policy, kind).nodeMonitorGracePeriodSeconds)),
  );
  return runSilences({
    ...setup,
    ...{ tables, nodes: options.nodes, longestGraceMs: 1_000 * longestSeconds },
    laws: {
      ...laws,
      onSilence(node) {
        laws.onSilence(node);
        sites?.onSilence(node);
      },
      onReturn(node) {
        laws.onReturn(node);
        sites?.onReturn(node);
      },
    },
    timesOf: (node) => {
      const { nodeMonitorGracePeriodSeconds, nodeStartupGracePeriodSeconds } = policyOfKind(
        policies.current,
        kindOf(node),
      );
      return { graceSeconds: nodeMonitorGracePeriodSeconds, startupSeconds: nodeStartupGracePeriodSeconds };
    },
  });
}

/** What only a mixed fleet has. */
function startPeople(
  setup: LongSetup,
  of: {
    readonly tables: FleetTables;
    readonly laws: LongLaws;
    readonly intervals: FollowedIntervals;
    readonly functions: Functions;
    readonly silences: Silences;
  },
): void {
  const { random, kinds, kindOf, policies, options, time, heartbeats } = setup;
  const { tables, laws, intervals, functions, silences } = of;
  const { nodes } = options;
  const all = Array.from({ length: nodes }, (_, node) => node);
  makePromises({ time, heartbeats, nodes, tables, laws, silences, fraction: random('promises') });
  const labelledMs = new Float64Array(nodes).fill(START_MS);
  changeLabels({
    ...{ time, nodes, kindOf, fraction: random('labels') },
    async relabel(node, kind) {
      laws.onRelabelled(node, kindOf(node));
      kinds[node] = kind;
      labelledMs[node] = time.nowMs();
      await tables.relabel(node, kind);
    },
  });
  const hasWrongProfile = (node: number): boolean =>
    time.nowMs() - labelledMs[node]! > SETTLED_AFTER_MS &&
    tables.profileOf(node) !== profileNameOf(labelsOf(kindOf(node)), policies.current.profiles);
  rollPolicies({
    ...{ time, fraction: random('policies'), policies: policiesOf(options), deployed: policies, functions },
    asPlanted: (policy) => ({ ...policy, ...options.plant?.policy }),
    beforeRoll: () => laws.onRoll(all.filter(hasWrongProfile).length),
    onTimesChanged: () => {
      for (const node of all) intervals.onTimesChanged(node);
    },
  });
}

function startTicks(setup: LongSetup, tables: FleetTables, laws: LongLaws): Functions {
  const { time, plan, random, policies, options } = setup;
  const policy = policies.current;
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
