/**
 * Long virtual time under faults of ours alone, at the level of the rules: a fleet that beats all along, ticks that come
 * late, twice, half or not at all, a heartbeat path that loses requests, clocks that step. Whoever is marked is marked by
 * mistake. A few machines may really die, to show that doubting ourselves does not keep them from being found out.
 *
 * Time is true time; servers read it through a clock that faults may move. A beat is tried five times, as a kubelet does; a
 * probe once, as node-monitor sends it.
 */

import { decideMonitor } from '../shared/controllers/node-monitor/rule.ts';
import type { NodeHealth } from '../shared/domain/nodes/node-health.ts';
import type { Policy } from '../shared/domain/policy.ts';
import { applyDisruption, type DisruptionRecord, NO_DISRUPTION } from '../shared/domain/zones/disruption.ts';
import type { ZoneRecord } from '../shared/domain/zones/fleet-records.ts';
import {
  decideGate,
  firstProbes,
  type GateRecord,
  needsAllProbes,
  PROBES_PER_TICK_MAX,
  UNTRIED_GATE,
} from '../shared/domain/zones/gate.ts';
import { seededFraction } from './seeded-random.ts';

export const FAULTS = [
  'missedTicks',
  'duplicateTicks',
  'lateTicks',
  'halfTicks',
  'ingestDown',
  'ingestLossy',
  'clockStep',
  'staleReads',
] as const;
export type FaultKind = (typeof FAULTS)[number];

export interface FalseMarksOptions {
  readonly nodes: number;
  readonly hours: number;
  readonly seed: number;
  readonly policy: Policy;
  /** Mean time from the end of a fault to the next one. Seconds. */
  readonly meanCalmSeconds: number;
  /** Kinds of faults that happen; all of them unless told. */
  readonly faults?: readonly FaultKind[];
  /** Machines that really die each hour; each is replaced an hour after it was found out. */
  readonly deathsPerHour?: number;
}

export interface FalseMarksResult {
  readonly nodeHours: number;
  readonly passes: number;
  readonly falseMarks: number;
  /** The same by the faults that were going on, or had just ended. */
  readonly falseMarksDuring: Readonly<Record<string, number>>;
  /** Marks that the gate alone prevented. */
  readonly withheldMarks: number;
  readonly faults: Readonly<Record<FaultKind, number>>;
  /** Share of passes in which the gate held. */
  readonly gateHeldShare: number;
  readonly deaths: number;
  /** Seconds from the last beat of each dead machine to its mark. */
  readonly foundAfterSeconds: readonly number[];
}

const START_MS = Date.UTC(2026, 0, 1);
const ZONES = 4;
const TRIES_A_BEAT = 5;
/** A beat comes up to so much later than its interval, as a share of it. */
const BEAT_JITTER = 0.04;
/** Two processes' clocks differ by up to this. Milliseconds. */
const SKEW_MS = 500;
/** Replaced so long after its mark. */
const REPLACED_AFTER_MS = 3_600_000;

type MutableHealth = { -readonly [Field in keyof NodeHealth]: NodeHealth[Field] };

interface Machine {
  readonly health: MutableHealth;
  nextBeatAtMs: number;
  /** Infinity while it lives. */
  diesAtMs: number;
  lastBeatAtMs: number;
  markedAtMs: number | undefined;
}

interface Fault {
  readonly kind: FaultKind;
  readonly fromMs: number;
  readonly untilMs: number;
  /** Share of lost requests or ticks, or milliseconds of a step or delay. */
  readonly size: number;
}

export function simulateFalseMarks(options: FalseMarksOptions): FalseMarksResult {
  const { policy, nodes: nodeCount, hours, seed, meanCalmSeconds, deathsPerHour = 0 } = options;
  const kinds = options.faults ?? FAULTS;
  const random = seededFraction(seed);
  const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
  const beatMs = policy.beatIntervalSeconds * 1_000;
  const endMs = START_MS + hours * 3_600_000;
  const machines = Array.from({ length: nodeCount }, (_, index) => newMachine(index, START_MS, beatMs, random));
  const digests = machines.map(({ health }) => health);
  const zones: ZoneRecord[] = Array.from({ length: ZONES }, (_, zone) => ({
    zone: `zone-${zone}`,
    state: 'Normal',
    limiter: { tatMs: undefined, ratePerSecond: policy.nodeEvictionRatePerSecond },
  }));
  const faults = Object.fromEntries(FAULTS.map((kind) => [kind, 0])) as Record<FaultKind, number>;
  const foundAfterSeconds: number[] = [];
  const falseMarksDuring: Record<string, number> = {};
  let gate: GateRecord = UNTRIED_GATE;
  let disruption: DisruptionRecord = NO_DISRUPTION;
  let fault: Fault | undefined;
  let second: Fault | undefined;
  let nextFaultAtMs = START_MS + calm();
  /** What server clocks are ahead of true time, since a step. */
  let clockAheadMs = 0;
  let lastPassAtMs = Number.NEGATIVE_INFINITY;
  let passes = 0;
  let held = 0;
  let falseMarks = 0;
  let withheldMarks = 0;
  let deaths = 0;

  function calm(): number {
    return -Math.log(1 - random()) * meanCalmSeconds * 1_000;
  }

  function newFault(nowMs: number): Fault {
    const kind = kinds[Math.floor(random() * kinds.length)]!;
    faults[kind] += 1;
    const isLong = random() < 0.2;
    const lengthMs = isLong ? 60_000 + random() * 900_000 : 5_000 + random() * 90_000;
    const untilMs = nowMs + lengthMs;
    switch (kind) {
      case 'missedTicks':
      case 'duplicateTicks':
      case 'halfTicks':
        return { kind, fromMs: nowMs, untilMs, size: 0.2 + 0.8 * random() };
      case 'lateTicks':
        return { kind, fromMs: nowMs, untilMs, size: random() < 0.5 ? periodMs * 0.9 * random() : 60_000 * random() };
      case 'ingestDown':
        return { kind, fromMs: nowMs, untilMs, size: 1 };
      case 'ingestLossy':
        return { kind, fromMs: nowMs, untilMs, size: 0.1 + 0.85 * random() };
      case 'staleReads':
        return { kind, fromMs: nowMs, untilMs, size: 1_000 * random() };
      case 'clockStep':
        clockAheadMs += (random() < 0.5 ? 1 : -1) * (random() < 0.5 ? 5_000 : 60_000) * random();
        return { kind, fromMs: nowMs, untilMs: nowMs, size: 0 };
    }
  }

  const active = (kind: FaultKind, nowMs: number): Fault | undefined => {
    for (const each of [fault, second]) {
      if (each !== undefined && each.kind === kind && nowMs >= each.fromMs && nowMs < each.untilMs) return each;
    }
    return undefined;
  };
  const lossAt = (nowMs: number): number =>
    Math.max(active('ingestDown', nowMs)?.size ?? 0, active('ingestLossy', nowMs)?.size ?? 0);

  function arrives(nowMs: number, tries: number): boolean {
    const loss = lossAt(nowMs);
    if (loss === 0) return true;
    for (let attempt = 0; attempt < tries; attempt += 1) if (random() >= loss) return true;
    return false;
  }

  /** Beats up to now, as the store has them then. */
  function beatUntil(machine: Machine, nowMs: number): void {
    while (machine.nextBeatAtMs <= nowMs && machine.nextBeatAtMs < machine.diesAtMs) {
      const atMs = machine.nextBeatAtMs;
      machine.nextBeatAtMs += beatMs * (1 + BEAT_JITTER * random());
      if (!arrives(atMs, TRIES_A_BEAT)) continue;
      machine.lastBeatAtMs = atMs;
      machine.health.renewedAtMs = atMs + clockAheadMs + SKEW_MS * (2 * random() - 1);
    }
  }

  function pass(nowMs: number): void {
    passes += 1;
    const serverMs = nowMs + clockAheadMs;
    const sendProbe = () => ({ sentAtMs: serverMs, accepted: arrives(nowMs, 1) });
    const probes = Array.from({ length: firstProbes(policy) }, sendProbe);
    const answers = probes.map(({ accepted }) => accepted);
    if (needsAllProbes(gate, answers)) while (probes.length < PROBES_PER_TICK_MAX) probes.push(sendProbe());
    const decidedGate = decideGate(gate, { nowMs: serverMs, probes, policy });
    const world = { nodes: digests, zones, queue: [], disruption, gate: decidedGate };
    const { decisions, withheldMarks: withheld } = decideMonitor(world, { nowMs: serverMs, policy });
    if (decidedGate.reasons.length > 0) held += 1;
    withheldMarks += withheld;
    // A tick that dies half-way has claimed its slot, and stored what it decided about us; it has not finished.
    const half = active('halfTicks', nowMs);
    const died = half !== undefined && random() < half.size;
    gate = died ? { ...decidedGate, lastTickAtMs: gate.lastTickAtMs } : decidedGate;
    if (died) return;
    for (const decision of decisions) {
      if (decision.kind === 'leaveTotalDisruption' || decision.kind === 'enterTotalDisruption') {
        disruption = applyDisruption(
          disruption,
          decision.kind === 'enterTotalDisruption' ? 'enter' : 'leave',
          serverMs,
        );
      }
      if (decision.kind !== 'markUnknown') continue;
      const machine = machines[Number(decision.nodeName.slice(2))]!;
      machine.health.ready = 'Unknown';
      machine.health.markedAtMs = serverMs;
      machine.markedAtMs = nowMs;
      if (machine.diesAtMs > nowMs) {
        falseMarks += 1;
        const during = [fault, second]
          .flatMap((each) => each?.kind ?? [])
          .sort()
          .join(' and ');
        falseMarksDuring[during] = (falseMarksDuring[during] ?? 0) + 1;
      } else foundAfterSeconds.push((nowMs - machine.lastBeatAtMs) / 1_000);
    }
  }

  for (let tickMs = START_MS; tickMs <= endMs; tickMs += periodMs) {
    if (tickMs >= nextFaultAtMs) {
      // Faults come alone or two together.
      fault = newFault(tickMs);
      second = random() < 0.3 ? newFault(tickMs) : undefined;
      nextFaultAtMs = Math.max(fault.untilMs, second?.untilMs ?? 0) + calm();
    }
    if (random() < (deathsPerHour * periodMs) / 3_600_000) {
      const victim = machines[Math.floor(random() * machines.length)]!;
      if (victim.diesAtMs === Number.POSITIVE_INFINITY) {
        victim.diesAtMs = tickMs;
        deaths += 1;
      }
    }
    const late = active('lateTicks', tickMs);
    const nowMs = tickMs + (late === undefined ? periodMs * 0.02 * random() : late.size);
    const stale = active('staleReads', tickMs)?.size ?? 0;
    for (let index = 0; index < machines.length; index += 1) {
      const machine = machines[index]!;
      beatUntil(machine, nowMs - stale);
      if (machine.markedAtMs !== undefined && nowMs - machine.markedAtMs > REPLACED_AFTER_MS) {
        const replacement = newMachine(index, nowMs, beatMs, random, clockAheadMs);
        machines[index] = replacement;
        digests[index] = replacement.health;
      }
    }
    const missed = active('missedTicks', tickMs);
    if (missed !== undefined && random() < missed.size) continue;
    // A later slot was claimed before this one came: it is lost.
    if (nowMs <= lastPassAtMs) continue;
    lastPassAtMs = nowMs;
    pass(nowMs);
    const twice = active('duplicateTicks', tickMs);
    // The slot is claimed already; a second run that was not stopped by that finds nothing to do.
    if (twice !== undefined && random() < twice.size) pass(nowMs + 200 * random());
  }

  return {
    nodeHours: nodeCount * hours,
    passes,
    falseMarks,
    falseMarksDuring,
    withheldMarks,
    faults,
    gateHeldShare: held / passes,
    deaths,
    foundAfterSeconds,
  };
}

function newMachine(index: number, nowMs: number, beatMs: number, random: () => number, clockAheadMs = 0): Machine {
  const createdAtMs = nowMs + clockAheadMs;
  return {
    health: {
      nodeName: `m-${index}`,
      uid: `uid-${index}-${nowMs}`,
      zone: `zone-${index % ZONES}`,
      ready: 'True',
      excluded: false,
      suspect: false,
      noExecute: { notReady: false, unreachable: false },
      createdAtMs,
      renewedAtMs: createdAtMs,
      statusAtMs: createdAtMs,
    },
    nextBeatAtMs: nowMs + beatMs * random(),
    diesAtMs: Number.POSITIVE_INFINITY,
    lastBeatAtMs: nowMs,
    markedAtMs: undefined,
  };
}
