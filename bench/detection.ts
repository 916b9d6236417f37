/**
 * How fast failed nodes are found, and how often live ones are marked by mistake, by policy and size of the fleet, on
 * virtual time through the rules of one tick. Stores answer the same at any size, so no store is used.
 *
 * Detection: machines stop sending heartbeats at random phases of heartbeat and tick; the others go on. False marks:
 * no machine fails, and the faults of simulation/own-faults.ts never end.
 */

import type { ZoneRecord } from '../shared/fleet/fleet-records.ts';
import { UNTRIED_GATE } from '../shared/fleet/gate.ts';
import { decideMonitor } from '../shared/fleet/marks.rule.ts';
import type { NodeHealth } from '../shared/fleet/nodes/health.ts';
import { defaultPolicy, type Policy } from '../shared/fleet/policy.ts';
import { poissonBound95 } from '../shared/fleet/silences/poisson-bound.ts';
import { NO_DISRUPTION } from '../shared/fleet/zone-state.ts';
import { simulateFalseMarks } from '../simulation/false-marks.ts';
import { FAULTS, type FaultKind } from '../simulation/own-faults.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import {
  type Benchmark,
  type Figures,
  percentile,
  readOptions,
  rounded,
  wholeNumber,
  wholeNumbers,
} from './benchmark.ts';

const FLEETS = [10, 100, 1_000, 10_000];
const CASES = 300;
/** By size of the fleet. A fault costs a small fleet as much as a large one. */
const NODE_HOURS: Readonly<Record<number, number>> = { 10: 20_000, 100: 160_000, 1000: 600_000, 10000: 220_000 };
const NODE_HOURS_OTHERWISE = 50_000;
/** With a path that loses 10 to 95 % of requests for long among the faults. */
const LOSSY = { nodes: 1_000, nodeHours: 100_000 };
const WITHOUT_LOSS = FAULTS.filter((kind) => kind !== 'ingestLossy');
const MEAN_CALM_SECONDS = 180;
const ZONES = ['zone-a', 'zone-b', 'zone-c'];
const START_MS = Date.UTC(2026, 0, 1);
const SEED = 8_123;
const FALSE_MARKS_SEED = 71;
/** How much later than every interval a heartbeat may come, as a share of it. */
const BEAT_JITTER = 0.04;

const POLICIES: Readonly<Record<string, Policy>> = {
  default: defaultPolicy,
  patient: { ...defaultPolicy, nodeMonitorGracePeriodSeconds: 90 },
  quick: { ...defaultPolicy, beatIntervalSeconds: 5, leaseDurationSeconds: 20, nodeMonitorGracePeriodSeconds: 20 },
  'three heartbeats': { ...defaultPolicy, nodeMonitorGracePeriodSeconds: 30 },
};

export const detection: Benchmark = {
  name: 'detection',
  about:
    'last heartbeat to Ready=Unknown, and marks by mistake under faults of ours, by policy and size (virtual time)',
  usage: '[--nodes 10,100,1000,10000] [--cases 300] [--effort 100 PERCENT of the node-hours; 0: no false marks]',
  smallest: ['--nodes', '10', '--cases', '20', '--effort', '1'],
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, { nodes: text, cases: text, effort: text });
    const sizes = wholeNumbers('nodes', values.nodes, { least: 4, most: 100_000, otherwise: FLEETS });
    const cases = wholeNumber('cases', values.cases, { least: 1, most: 100_000, otherwise: CASES });
    const effort = wholeNumber('effort', values.effort, { least: 0, most: 1_000, otherwise: 100 }) / 100;
    for (const [name, policy] of Object.entries(POLICIES)) {
      for (const nodes of sizes) report({ part: 'detection', policy: name, nodes, ...detect(nodes, policy, cases) });
      if (effort === 0) continue;
      for (const nodes of sizes) {
        const nodeHours = (NODE_HOURS[nodes] ?? NODE_HOURS_OTHERWISE) * effort;
        const marks = mistakes({ nodes, nodeHours, policy, seed: FALSE_MARKS_SEED + nodes, faults: WITHOUT_LOSS });
        report({ part: 'false marks', policy: name, ...marks });
      }
      const { nodes } = LOSSY;
      const nodeHours = LOSSY.nodeHours * effort;
      const lossy = mistakes({ nodes, nodeHours, policy, seed: FALSE_MARKS_SEED, faults: FAULTS });
      report({ part: 'false marks, with a path that loses requests', policy: name, ...lossy });
    }
  },
};

function detect(nodes: number, policy: Policy, cases: number): Figures {
  const { latenciesMs, falseMarks } = measureDetection(nodes, policy, cases);
  const seconds = latenciesMs.map((ms) => ms / 1_000);
  return {
    cases: seconds.length,
    p50Seconds: rounded(percentile(seconds, 0.5)),
    p99Seconds: rounded(percentile(seconds, 0.99)),
    maxSeconds: rounded(Math.max(...seconds)),
    limitSeconds: policy.nodeMonitorGracePeriodSeconds + policy.nodeMonitorPeriodSeconds,
    falseMarks,
  };
}

interface FaultyRun {
  readonly nodes: number;
  readonly nodeHours: number;
  readonly policy: Policy;
  readonly seed: number;
  readonly faults: readonly FaultKind[];
}

function mistakes({ nodes, nodeHours, policy, seed, faults }: FaultyRun): Figures {
  const hours = Math.max(1, Math.round(nodeHours / nodes));
  const result = simulateFalseMarks({ nodes, hours, policy, seed, faults, meanCalmSeconds: MEAN_CALM_SECONDS });
  return {
    nodes,
    nodeHours: result.nodeHours,
    falseMarks: result.falseMarks,
    // With 95 % confidence no more than this.
    bound95PerMillionNodeHours: rounded((poissonBound95(result.falseMarks) / result.nodeHours) * 1e6, 3),
  };
}

interface Machine {
  readonly name: string;
  readonly zone: string;
  lastBeatAtMs: number;
  nextBeatAtMs: number;
  /** No beat from here on. */
  silentFromMs: number;
  markedAtMs: number | undefined;
}

interface Measured {
  readonly latenciesMs: number[];
  readonly falseMarks: number;
}

/** Small fleets repeat the story until there are enough cases: at most one in ten machines falls silent at a time. */
function measureDetection(machineCount: number, policy: Policy, cases: number): Measured {
  const random = seededFraction(SEED);
  const perStory = Math.max(1, Math.min(cases, Math.floor(machineCount / 10)));
  const measured: Measured[] = [];
  for (let left = cases; left > 0; left -= perStory) {
    measured.push(story(machineCount, Math.min(left, perStory), policy, random));
  }
  return {
    latenciesMs: measured.flatMap(({ latenciesMs }) => latenciesMs),
    falseMarks: measured.reduce((sum, each) => sum + each.falseMarks, 0),
  };
}

function story(machineCount: number, silent: number, policy: Policy, random: () => number): Measured {
  const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
  const graceMs = policy.nodeMonitorGracePeriodSeconds * 1_000;
  const intervalMs = policy.beatIntervalSeconds * 1_000;
  const machines: Machine[] = Array.from({ length: machineCount }, (_, index) => ({
    name: `m-${index}`,
    zone: ZONES[index % ZONES.length]!,
    lastBeatAtMs: START_MS,
    nextBeatAtMs: START_MS + intervalMs * random(),
    // The silent ones stop at any moment of a minute, after a beat of theirs.
    silentFromMs: index < silent ? START_MS + intervalMs + 60_000 * random() : Number.POSITIVE_INFINITY,
    markedAtMs: undefined,
  }));
  const endMs = START_MS + intervalMs + 60_000 + graceMs + 2 * periodMs;
  const zones: ZoneRecord[] = [];
  const latenciesMs: number[] = [];
  let falseMarks = 0;
  for (let nowMs = START_MS; nowMs <= endMs; nowMs += periodMs) {
    const nodes = machines.map((machine) => healthAt(machine, nowMs, intervalMs, random));
    const { decisions } = decideMonitor(
      { nodes, zones, queue: [], disruption: NO_DISRUPTION, gate: UNTRIED_GATE },
      { nowMs, policy },
    );
    for (const decision of decisions) {
      if (decision.kind !== 'markUnknown') continue;
      const machine = machines[Number(decision.nodeName.slice(2))]!;
      machine.markedAtMs = nowMs;
      if (machine.silentFromMs > nowMs) falseMarks += 1;
      else latenciesMs.push(nowMs - machine.lastBeatAtMs);
    }
  }
  return { latenciesMs, falseMarks };
}

/** Lets the machine beat up to now, then says what the store knows of it. */
function healthAt(machine: Machine, nowMs: number, intervalMs: number, random: () => number): NodeHealth {
  while (machine.nextBeatAtMs <= nowMs && machine.nextBeatAtMs < machine.silentFromMs) {
    machine.lastBeatAtMs = machine.nextBeatAtMs;
    machine.nextBeatAtMs += intervalMs * (1 + BEAT_JITTER * random());
  }
  const marked = machine.markedAtMs !== undefined;
  return {
    nodeName: machine.name,
    uid: `uid-${machine.name}`,
    zone: machine.zone,
    ready: marked ? 'Unknown' : 'True',
    excluded: false,
    suspect: marked,
    noExecute: { notReady: false, unreachable: false },
    createdAtMs: START_MS - 3_600_000,
    renewedAtMs: machine.lastBeatAtMs,
    statusAtMs: START_MS - 60_000,
  };
}
