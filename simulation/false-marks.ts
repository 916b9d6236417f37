/**
 * Long virtual time under faults of ours alone, at the level of the rules: a fleet that beats all along, ticks that
 * come late, twice, half or not at all, a heartbeat path that loses requests, clocks that step. Whoever is marked is
 * marked by mistake. A few machines may really die, to show that the safety gate does not prevent their detection.
 *
 * Time is true time; servers read it through a clock that faults may move. A beat is tried five times, as a kubelet
 * does; a probe once, as node-monitor sends it.
 */

import {
  decideGate,
  firstProbes,
  type GateRecord,
  needsAllProbes,
  PROBES_PER_TICK_MAX,
  UNTRIED_GATE,
} from '../shared/fleet/marks/gate.ts';
import { decideMonitor } from '../shared/fleet/marks/rule.ts';
import type { NodeHealth } from '../shared/fleet/nodes/health-row.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import type { ZoneRecord } from '../shared/fleet/zones/fleet-records.ts';
import { applyDisruption, type DisruptionRecord, NO_DISRUPTION } from '../shared/fleet/zones/zone-state.ts';
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
  /** Kinds of faults that happen; all of them by default. */
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
  return new FalseMarksRun(options).run();
}

class FalseMarksRun {
  readonly #options: FalseMarksOptions;
  readonly #kinds: readonly (
    | 'missedTicks'
    | 'duplicateTicks'
    | 'lateTicks'
    | 'halfTicks'
    | 'ingestDown'
    | 'ingestLossy'
    | 'clockStep'
    | 'staleReads'
  )[];
  readonly #random: () => number;
  readonly #periodMs: number;
  readonly #beatMs: number;
  readonly #endMs: number;
  readonly #machines: Machine[];
  readonly #digests: MutableHealth[];
  readonly #zones: ZoneRecord[];
  readonly #faults = Object.fromEntries(FAULTS.map((kind) => [kind, 0])) as Record<FaultKind, number>;
  readonly #foundAfterSeconds: number[] = [];
  readonly #falseMarksDuring: Record<string, number> = {};
  #gate: GateRecord = UNTRIED_GATE;
  #disruption: DisruptionRecord = NO_DISRUPTION;
  #fault: Fault | undefined;
  #second: Fault | undefined;
  #nextFaultAtMs: number;
  /** What server clocks are ahead of true time, since a step. */
  #clockAheadMs = 0;
  #lastPassAtMs = Number.NEGATIVE_INFINITY;
  #passes = 0;
  #held = 0;
  #falseMarks = 0;
  #withheldMarks = 0;
  #deaths = 0;

  constructor(options: FalseMarksOptions) {
    this.#options = options;
    this.#kinds = this.#options.faults ?? FAULTS;
    this.#random = seededFraction(this.#options.seed);
    this.#periodMs = this.#options.policy.nodeMonitorPeriodSeconds * 1_000;
    this.#beatMs = this.#options.policy.beatIntervalSeconds * 1_000;
    this.#endMs = START_MS + this.#options.hours * 3_600_000;
    this.#machines = Array.from({ length: this.#options.nodes }, (_, index) =>
      newMachine(index, START_MS, this.#beatMs, this.#random),
    );
    this.#digests = this.#machines.map(({ health }) => health);
    this.#zones = Array.from({ length: ZONES }, (_, zone) => ({
      zone: `zone-${zone}`,
      state: 'Normal',
      limiter: { tatMs: undefined, ratePerSecond: this.#options.policy.nodeEvictionRatePerSecond },
    }));
    this.#nextFaultAtMs = START_MS + this.#calm();
  }

  run(): FalseMarksResult {
    for (let tickMs = START_MS; tickMs <= this.#endMs; tickMs += this.#periodMs) {
      if (tickMs >= this.#nextFaultAtMs) {
        // Faults come alone or two together.
        this.#fault = this.#newFault(tickMs);
        this.#second = this.#random() < 0.3 ? this.#newFault(tickMs) : undefined;
        this.#nextFaultAtMs = Math.max(this.#fault.untilMs, this.#second?.untilMs ?? 0) + this.#calm();
      }
      if (this.#random() < ((this.#options.deathsPerHour ?? 0) * this.#periodMs) / 3_600_000) {
        const victim = this.#machines[Math.floor(this.#random() * this.#machines.length)]!;
        if (victim.diesAtMs === Number.POSITIVE_INFINITY) {
          victim.diesAtMs = tickMs;
          this.#deaths += 1;
        }
      }
      const late = this.#active('lateTicks', tickMs);
      const nowMs = tickMs + (late === undefined ? this.#periodMs * 0.02 * this.#random() : late.size);
      const stale = this.#active('staleReads', tickMs)?.size ?? 0;
      for (let index = 0; index < this.#machines.length; index += 1) {
        const machine = this.#machines[index]!;
        this.#beatUntil(machine, nowMs - stale);
        if (machine.markedAtMs !== undefined && nowMs - machine.markedAtMs > REPLACED_AFTER_MS) {
          const replacement = newMachine(index, nowMs, this.#beatMs, this.#random, this.#clockAheadMs);
          this.#machines[index] = replacement;
          this.#digests[index] = replacement.health;
        }
      }
      const missed = this.#active('missedTicks', tickMs);
      if (missed !== undefined && this.#random() < missed.size) continue;
      // A later slot was claimed before this one came: it is lost.
      if (nowMs <= this.#lastPassAtMs) continue;
      this.#lastPassAtMs = nowMs;
      this.#pass(nowMs);
      const twice = this.#active('duplicateTicks', tickMs);
      // The slot is claimed already; a second run that was not stopped by that finds nothing to do.
      if (twice !== undefined && this.#random() < twice.size) this.#pass(nowMs + 200 * this.#random());
    }
    return {
      nodeHours: this.#options.nodes * this.#options.hours,
      passes: this.#passes,
      falseMarks: this.#falseMarks,
      falseMarksDuring: this.#falseMarksDuring,
      withheldMarks: this.#withheldMarks,
      faults: this.#faults,
      gateHeldShare: this.#held / this.#passes,
      deaths: this.#deaths,
      foundAfterSeconds: this.#foundAfterSeconds,
    };
  }

  #calm(): number {
    return -Math.log(1 - this.#random()) * this.#options.meanCalmSeconds * 1_000;
  }

  #newFault(nowMs: number): Fault {
    const kind = this.#kinds[Math.floor(this.#random() * this.#kinds.length)]!;
    this.#faults[kind] += 1;
    const isLong = this.#random() < 0.2;
    const lengthMs = isLong ? 60_000 + this.#random() * 900_000 : 5_000 + this.#random() * 90_000;
    const untilMs = nowMs + lengthMs;
    switch (kind) {
      case 'missedTicks':
      case 'duplicateTicks':
      case 'halfTicks':
        return { kind, fromMs: nowMs, untilMs, size: 0.2 + 0.8 * this.#random() };
      case 'lateTicks':
        return {
          kind,
          fromMs: nowMs,
          untilMs,
          size: this.#random() < 0.5 ? this.#periodMs * 0.9 * this.#random() : 60_000 * this.#random(),
        };
      case 'ingestDown':
        return { kind, fromMs: nowMs, untilMs, size: 1 };
      case 'ingestLossy':
        return { kind, fromMs: nowMs, untilMs, size: 0.1 + 0.85 * this.#random() };
      case 'staleReads':
        return { kind, fromMs: nowMs, untilMs, size: 1_000 * this.#random() };
      case 'clockStep':
        this.#clockAheadMs +=
          (this.#random() < 0.5 ? 1 : -1) * (this.#random() < 0.5 ? 5_000 : 60_000) * this.#random();
        return { kind, fromMs: nowMs, untilMs: nowMs, size: 0 };
    }
  }

  #active(kind: FaultKind, nowMs: number): Fault | undefined {
    for (const each of [this.#fault, this.#second]) {
      if (each !== undefined && each.kind === kind && nowMs >= each.fromMs && nowMs < each.untilMs) return each;
    }
    return undefined;
  }

  #lossAt(nowMs: number): number {
    return Math.max(this.#active('ingestDown', nowMs)?.size ?? 0, this.#active('ingestLossy', nowMs)?.size ?? 0);
  }

  #arrives(nowMs: number, tries: number): boolean {
    const loss = this.#lossAt(nowMs);
    if (loss === 0) return true;
    for (let attempt = 0; attempt < tries; attempt += 1) if (this.#random() >= loss) return true;
    return false;
  }

  /** Beats up to now, as the store has them then. */
  #beatUntil(machine: Machine, nowMs: number): void {
    while (machine.nextBeatAtMs <= nowMs && machine.nextBeatAtMs < machine.diesAtMs) {
      const atMs = machine.nextBeatAtMs;
      machine.nextBeatAtMs += this.#beatMs * (1 + BEAT_JITTER * this.#random());
      if (!this.#arrives(atMs, TRIES_A_BEAT)) continue;
      machine.lastBeatAtMs = atMs;
      machine.health.renewedAtMs = atMs + this.#clockAheadMs + SKEW_MS * (2 * this.#random() - 1);
    }
  }

  #pass(nowMs: number): void {
    this.#passes += 1;
    const serverMs = nowMs + this.#clockAheadMs;
    const sendProbe = () => ({ sentAtMs: serverMs, accepted: this.#arrives(nowMs, 1) });
    const probes = Array.from({ length: firstProbes(this.#options.policy) }, sendProbe);
    const answers = probes.map(({ accepted }) => accepted);
    if (needsAllProbes(this.#gate, answers)) while (probes.length < PROBES_PER_TICK_MAX) probes.push(sendProbe());
    const decidedGate = decideGate(this.#gate, { nowMs: serverMs, probes, policy: this.#options.policy });
    const world = {
      nodes: this.#digests,
      zones: this.#zones,
      queue: [],
      disruption: this.#disruption,
      gate: decidedGate,
    };
    const { decisions, withheldMarks: withheld } = decideMonitor(world, {
      nowMs: serverMs,
      policy: this.#options.policy,
    });
    if (decidedGate.reasons.length > 0) this.#held += 1;
    this.#withheldMarks += withheld;
    // A tick that dies half-way has claimed its slot, and stored what it decided about us; it has not finished.
    const half = this.#active('halfTicks', nowMs);
    const died = half !== undefined && this.#random() < half.size;
    this.#gate = died ? { ...decidedGate, lastTickAtMs: this.#gate.lastTickAtMs } : decidedGate;
    if (died) return;
    for (const decision of decisions) {
      if (decision.kind === 'leaveTotalDisruption' || decision.kind === 'enterTotalDisruption') {
        this.#disruption = applyDisruption(
          this.#disruption,
          decision.kind === 'enterTotalDisruption' ? 'enter' : 'leave',
          serverMs,
        );
      }
      if (decision.kind !== 'markUnknown') continue;
      const machine = this.#machines[Number(decision.nodeName.slice(2))]!;
      machine.health.ready = 'Unknown';
      machine.health.markedAtMs = serverMs;
      machine.markedAtMs = nowMs;
      if (machine.diesAtMs > nowMs) {
        this.#falseMarks += 1;
        const during = [this.#fault, this.#second]
          .flatMap((each) => each?.kind ?? [])
          .sort()
          .join(' and ');
        this.#falseMarksDuring[during] = (this.#falseMarksDuring[during] ?? 0) + 1;
      } else this.#foundAfterSeconds.push((nowMs - machine.lastBeatAtMs) / 1_000);
    }
  }
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
