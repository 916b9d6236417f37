/**
 * Long virtual time under faults of ours alone, at the level of the rules: a fleet that beats all along, ticks that
 * come late, twice, half or not at all, a heartbeat path that loses requests, clocks that step. Whoever is marked is
 * marked by mistake. A few machines may really die, to show that the safety gate does not prevent their detection.
 *
 * Time is true time; servers read it through a clock that faults may move. A beat is tried five times, as a kubelet
 * does; a probe once, as node-monitor sends it.
 */

import type { NodeHealth } from '../shared/fleet/nodes/health.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import { FAULTS, type FaultKind, OwnFaults } from './own-faults.ts';
import { RuleMonitor } from './rule-monitor.ts';
import { seededFraction } from './seeded-random.ts';

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

export function simulateFalseMarks(options: FalseMarksOptions): FalseMarksResult {
  return new FalseMarksRun(options).run();
}

class FalseMarksRun {
  readonly #options: FalseMarksOptions;
  readonly #random: () => number;
  readonly #periodMs: number;
  readonly #beatMs: number;
  readonly #endMs: number;
  readonly #machines: Machine[];
  readonly #digests: MutableHealth[];
  readonly #monitor: RuleMonitor;
  readonly #faults: OwnFaults;
  readonly #foundAfterSeconds: number[] = [];
  readonly #falseMarksDuring: Record<string, number> = {};
  #lastPassAtMs = Number.NEGATIVE_INFINITY;
  #falseMarks = 0;
  #withheldMarks = 0;
  #deaths = 0;

  constructor(options: FalseMarksOptions) {
    this.#options = options;
    const { policy, faults: kinds = FAULTS, meanCalmSeconds } = options;
    this.#random = seededFraction(options.seed);
    this.#periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
    this.#beatMs = policy.beatIntervalSeconds * 1_000;
    this.#endMs = START_MS + options.hours * 3_600_000;
    this.#machines = Array.from({ length: options.nodes }, (_, index) =>
      newMachine(index, START_MS, this.#beatMs, this.#random),
    );
    this.#digests = this.#machines.map(({ health }) => health);
    const zones = Array.from({ length: ZONES }, (_, zone) => `zone-${zone}`);
    this.#monitor = new RuleMonitor(policy, zones);
    const { periodMs, random } = { periodMs: this.#periodMs, random: this.#random };
    this.#faults = new OwnFaults({ kinds, random, periodMs, meanCalmSeconds, startMs: START_MS });
  }

  run(): FalseMarksResult {
    for (let tickMs = START_MS; tickMs <= this.#endMs; tickMs += this.#periodMs) {
      this.#faults.begin(tickMs);
      if (this.#random() < ((this.#options.deathsPerHour ?? 0) * this.#periodMs) / 3_600_000) {
        const victim = this.#machines[Math.floor(this.#random() * this.#machines.length)]!;
        if (victim.diesAtMs === Number.POSITIVE_INFINITY) {
          victim.diesAtMs = tickMs;
          this.#deaths += 1;
        }
      }
      const nowMs = tickMs + (this.#faults.size('lateTicks', tickMs) ?? this.#periodMs * 0.02 * this.#random());
      const staleMs = this.#faults.size('staleReads', tickMs) ?? 0;
      for (let index = 0; index < this.#machines.length; index += 1) {
        const machine = this.#machines[index]!;
        this.#beatUntil(machine, nowMs - staleMs);
        if (machine.markedAtMs !== undefined && nowMs - machine.markedAtMs > REPLACED_AFTER_MS) {
          const replacement = newMachine(index, nowMs, this.#beatMs, this.#random, this.#faults.clockAheadMs);
          this.#machines[index] = replacement;
          this.#digests[index] = replacement.health;
        }
      }
      const missed = this.#faults.size('missedTicks', tickMs);
      if (missed !== undefined && this.#random() < missed) continue;
      // A later slot was claimed before this one came: it is lost.
      if (nowMs <= this.#lastPassAtMs) continue;
      this.#lastPassAtMs = nowMs;
      this.#pass(nowMs);
      const twice = this.#faults.size('duplicateTicks', tickMs);
      // The slot is claimed already; a second run that was not stopped by that finds nothing to do.
      if (twice !== undefined && this.#random() < twice) this.#pass(nowMs + 200 * this.#random());
    }
    return {
      nodeHours: this.#options.nodes * this.#options.hours,
      passes: this.#monitor.passes,
      falseMarks: this.#falseMarks,
      falseMarksDuring: this.#falseMarksDuring,
      withheldMarks: this.#withheldMarks,
      faults: this.#faults.counts,
      gateHeldShare: this.#monitor.held / this.#monitor.passes,
      deaths: this.#deaths,
      foundAfterSeconds: this.#foundAfterSeconds,
    };
  }

  /** Beats up to now, as the store has them then. */
  #beatUntil(machine: Machine, nowMs: number): void {
    while (machine.nextBeatAtMs <= nowMs && machine.nextBeatAtMs < machine.diesAtMs) {
      const atMs = machine.nextBeatAtMs;
      machine.nextBeatAtMs += this.#beatMs * (1 + BEAT_JITTER * this.#random());
      if (!this.#faults.arrives(atMs, TRIES_A_BEAT)) continue;
      machine.lastBeatAtMs = atMs;
      machine.health.renewedAtMs = atMs + this.#faults.clockAheadMs + SKEW_MS * (2 * this.#random() - 1);
    }
  }

  #pass(nowMs: number): void {
    const serverMs = nowMs + this.#faults.clockAheadMs;
    const { marks, withheldMarks } = this.#monitor.pass({
      nodes: this.#digests,
      serverMs,
      probe: () => this.#faults.arrives(nowMs, 1),
      dies: () => {
        const half = this.#faults.size('halfTicks', nowMs);
        return half !== undefined && this.#random() < half;
      },
    });
    this.#withheldMarks += withheldMarks;
    for (const { nodeName } of marks) {
      const machine = this.#machines[Number(nodeName.slice(2))]!;
      machine.health.ready = 'Unknown';
      machine.health.markedAtMs = serverMs;
      machine.markedAtMs = nowMs;
      if (machine.diesAtMs > nowMs) {
        this.#falseMarks += 1;
        const during = this.#faults.names();
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
