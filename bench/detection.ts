/**
 * Time from a machine's last beat to the pass that marks it Unknown, over 200 machines that fall silent at random
 * phases of beat and tick, on virtual time through the rules of one pass. The rest of the fleet beats on.
 */

import { decideMonitor } from '../shared/controllers/node-monitor/rule.ts';
import type { NodeHealth } from '../shared/domain/nodes/node-health.ts';
import { defaultPolicy, type Policy } from '../shared/domain/policy.ts';
import { NO_DISRUPTION } from '../shared/domain/zones/disruption.ts';
import type { ZoneRecord } from '../shared/domain/zones/fleet-records.ts';
import { UNTRIED_GATE } from '../shared/domain/zones/gate.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import { type Benchmark, percentile, rounded } from './benchmark.ts';

const CASES = 200;
const FLEETS = [10, 1_000, 100_000];
const ZONES = ['zone-a', 'zone-b', 'zone-c'];
const START_MS = Date.UTC(2026, 0, 1);
const SEED = 8_123;
/** How much later than every interval a beat may come, as a share of it. */
const BEAT_JITTER = 0.04;

export const detection: Benchmark = {
  name: 'detection',
  about: 'last beat to Ready=Unknown over 200 cases on virtual time, at 10, 1,000 and 100,000 machines',
  async run(report) {
    const policy = defaultPolicy;
    for (const machines of FLEETS) {
      const { latenciesMs, passMs, falseMarks } = measureDetection(machines, policy);
      const bySilence = latenciesMs.map((ms) => ms / 1_000);
      report({
        machines,
        cases: latenciesMs.length,
        graceSeconds: policy.nodeMonitorGracePeriodSeconds,
        periodSeconds: policy.nodeMonitorPeriodSeconds,
        minSeconds: rounded(Math.min(...bySilence)),
        p50Seconds: rounded(percentile(bySilence, 0.5)),
        p99Seconds: rounded(percentile(bySilence, 0.99)),
        maxSeconds: rounded(Math.max(...bySilence)),
        limitSeconds: policy.nodeMonitorGracePeriodSeconds + policy.nodeMonitorPeriodSeconds,
        falseMarks,
        passP50Ms: rounded(percentile(passMs, 0.5)),
      });
    }
  },
};

interface Machine {
  readonly name: string;
  readonly zone: string;
  lastBeatAtMs: number;
  nextBeatAtMs: number;
  /** No beat from here on. */
  silentFromMs: number;
  markedAtMs: number | undefined;
}

export interface Measured {
  readonly latenciesMs: number[];
  /** Wall time of each pass. */
  readonly passMs: number[];
  readonly falseMarks: number;
}

/** Small fleets repeat the story until there are enough cases: at most one in ten machines falls silent at a time. */
export function measureDetection(machineCount: number, policy: Policy, cases = CASES): Measured {
  const random = seededFraction(SEED);
  const perStory = Math.max(1, Math.min(cases, Math.floor(machineCount / 10)));
  const measured: Measured[] = [];
  for (let left = cases; left > 0; left -= perStory) {
    measured.push(story(machineCount, Math.min(left, perStory), policy, random));
  }
  return {
    latenciesMs: measured.flatMap(({ latenciesMs }) => latenciesMs),
    passMs: measured.flatMap(({ passMs }) => passMs),
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
  const passMs: number[] = [];
  let falseMarks = 0;
  for (let nowMs = START_MS; nowMs <= endMs; nowMs += periodMs) {
    const nodes = machines.map((machine) => healthAt(machine, nowMs, intervalMs, random));
    const startedMs = performance.now();
    const { decisions } = decideMonitor(
      { nodes, zones, queue: [], disruption: NO_DISRUPTION, gate: UNTRIED_GATE },
      { nowMs, policy },
    );
    passMs.push(performance.now() - startedMs);
    for (const decision of decisions) {
      if (decision.kind !== 'markUnknown') continue;
      const machine = machines[Number(decision.nodeName.slice(2))]!;
      machine.markedAtMs = nowMs;
      if (machine.silentFromMs > nowMs) falseMarks += 1;
      else latenciesMs.push(nowMs - machine.lastBeatAtMs);
    }
  }
  return { latenciesMs, passMs, falseMarks };
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
