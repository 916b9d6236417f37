/**
 * The laws of a long run. They use the true times of heartbeats and the episodes of the plan, and nothing that the rules
 * computed.
 *
 *   false mark  L1, L5: the node was marked although its machine sent a heartbeat at least every (grace - period) seconds,
 *               less the skew of two clocks and the steps of all clocks since. It makes no difference whether an outage
 *               of ours refused them. A machine counts as silent in a longer pause, and for one grace period after it.
 *               Not counted as false, but apart: marks within a grace period after ticks were missing for longer than
 *               the gate allows, while a step of all clocks back made the gap look shorter. Nothing stored shows it.
 *   late mark   L2: the node is not Unknown at the grace period, one period and the time of a tick after its last
 *               heartbeat; or after the last fault and two regular ticks, if that is later.
 *   ticks       the chain sends no more messages than it claims slots, and ticks again in time after faults.
 *
 * A fault's recovery is the time from the end of an episode to the end of the first tick that marks nodes again: it began
 * after the episode, and the gate is open.
 */
import type { Policy } from '../../shared/domain/policy.ts';
import { tickGapMaxMs } from '../../shared/domain/tick.ts';
import type { Item } from '../../shared/ports/item-store.ts';
import { type Episode, FAULT_NAMES, type FaultName, type FaultPlan } from '../faults/catalogue.ts';
import type { TickReport } from '../faults/faulty-ticks.ts';
import { EFFECT_MS } from '../laws/law.ts';
import { chainIsOne } from '../laws/ticks.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { ClockSteps } from './clock-steps.ts';
import { overlaps } from './episodes.ts';
import type { Heartbeats } from './heartbeats.ts';

/** Largest difference between the clocks of two processes. Milliseconds. */
const SKEW_MAX_MS = 2_000;
/** Faults that act at the beginning of an episode. */
const AT_ONCE: ReadonlySet<FaultName> = new Set(['clockJump', 'restart']);
const CHAIN = 'node-monitor';
/** Bound on the heartbeats of one grace period that are looked at. */
const HEARTBEATS_MAX = 50;

export interface FaultTally {
  episodes: number;
  /** Seconds from the last heartbeat to the mark, of nodes that were silent while it lasted or until it was recovered from. */
  readonly detectionSeconds: number[];
  /** Seconds from the end of an episode until nodes are marked again. */
  readonly recoverySeconds: number[];
}

export interface LongTally {
  ticks: number;
  messages: number;
  claims: number;
  /** Ticks that ended with the gate closed. */
  ticksWithClosedGate: number;
  rightMarks: number;
  /**
   * Right marks of machines with a pause of their own of over (grace - period). A heartbeat at the beginning or end of
   * it did not count: an outage of ours refused it, or it arrived during the mark.
   */
  marksByOutage: number;
  /** Early, after missing ticks that a step of all clocks back hid from the gate. */
  marksAfterHiddenGap: number;
  /** Right by the clocks of the processes, early by true time: all clocks stepped forward. */
  marksEarlyBySteps: number;
  falseMarks: number;
  /** The same by the faults that lasted then. */
  readonly falseMarksDuring: Record<string, number>;
  silences: number;
  /** L2, while no fault lasts. */
  lateMarks: number;
  /** The chain sent too much, or did not tick in calm. */
  chainFaults: number;
  /** Calls and ticks that failed. The chain continues after them. */
  failures: number;
  /** Seconds from the last heartbeat to the mark without any fault. */
  readonly calmDetectionSeconds: number[];
  readonly faults: Partial<Record<FaultName, FaultTally>>;
}

export interface LongLaws {
  onMarked(node: number): void;
  onState(state: Item): void;
  onReport(report: TickReport): void;
  onSent(): void;
  onFault(faults: readonly unknown[]): void;
  onSilence(node: number): void;
  onReturn(node: number): void;
  tally(): LongTally;
}

export interface LongLawsOptions {
  readonly policy: Policy;
  readonly time: VirtualTime;
  readonly startMs: number;
  readonly plan: FaultPlan;
  readonly clock: ClockSteps;
  readonly heartbeats: Heartbeats;
}

export function longLaws(options: LongLawsOptions): LongLaws {
  const checks = new LongChecks(options);
  return {
    onMarked: (node) => checks.onMarked(node),
    onState: (state) => checks.onState(state),
    onReport: (report) => checks.onReport(report),
    onSent: () => checks.onSent(),
    onFault: (faults) => checks.onFault(faults),
    onSilence: (node) => checks.onSilence(node),
    onReturn: (node) => checks.onReturn(node),
    tally: () => checks.tally,
  };
}

/** An episode of a fault, and when nodes were marked again after it. */
interface Recovery {
  readonly name: FaultName;
  readonly fromMs: number;
  readonly endMs: number;
  recoveredMs: number;
}

class LongChecks {
  readonly #options: LongLawsOptions;
  readonly #chain: ReturnType<typeof chainIsOne>;
  readonly #graceMs: number;
  readonly #periodMs: number;
  readonly #skewMs: number;
  /** By the beginning of the episode. */
  readonly #recoveries: Recovery[];
  /** Silent machines. Their Nodes are not marked. */
  readonly #watched = new Set<number>();
  readonly #late = new Set<number>();
  #slot: unknown;
  /** The last finished tick: by the clock of its process, and true time. */
  #finished: { readonly clockMs: number; readonly trueMs: number } | undefined;
  /** End of the last gap that a step of all clocks hid. True time. */
  #hiddenGapEndMs = Number.NEGATIVE_INFINITY;
  #isHolding = false;
  #failedNow = false;
  #isChainBroken = false;
  readonly tally: LongTally = {
    ...{
      ticks: 0,
      messages: 0,
      claims: 0,
      ticksWithClosedGate: 0,
      rightMarks: 0,
      marksByOutage: 0,
      marksAfterHiddenGap: 0,
      marksEarlyBySteps: 0,
    },
    ...{ falseMarks: 0, falseMarksDuring: {}, silences: 0, lateMarks: 0, chainFaults: 0, failures: 0 },
    calmDetectionSeconds: [],
    faults: {},
  };

  constructor(options: LongLawsOptions) {
    this.#options = options;
    const { policy, plan, time, startMs } = options;
    this.#graceMs = policy.nodeMonitorGracePeriodSeconds * 1_000;
    this.#periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
    this.#skewMs = plan.has('skew') ? SKEW_MAX_MS : 0;
    this.#recoveries = FAULT_NAMES.flatMap((name) => plan.episodes(name).map((episode) => recoveryOf(name, episode)));
    for (const { name } of this.#recoveries) this.#faultTally(name).episodes += 1;
    const most = (of: (policy: Policy) => number): number => of(policy);
    const fail = (): void => {
      this.#failedNow = true;
    };
    this.#chain = chainIsOne({ plan, nowMs: () => time.nowMs(), most, fail }, startMs);
  }

  onState(state: Item): void {
    const { slot, holding, doneAt } = state;
    if (typeof doneAt === 'number') this.#onFinished(doneAt);
    this.#isHolding = holding !== undefined;
    if (slot === this.#slot) return;
    this.tally.claims += 1;
    const change = {
      key: STATE_KEY,
      type: 'MODIFY',
      oldImage: { slot: this.#slot ?? -1 },
      newImage: { slot },
    } as const;
    this.#chain.onHappened?.(
      { kind: 'control', change: { ...change, sequence: 0, atMs: this.#options.time.nowMs() } as never },
      { name: CHAIN, who: '' },
    );
    this.#slot = slot;
  }

  #onFinished(clockMs: number): void {
    const before = this.#finished;
    if (before?.clockMs === clockMs) return;
    const trueMs = this.#options.time.nowMs();
    this.#finished = { clockMs, trueMs };
    if (before === undefined) return;
    const gapMaxMs = tickGapMaxMs(this.#options.policy);
    if (trueMs - before.trueMs > gapMaxMs && clockMs - before.clockMs <= gapMaxMs) this.#hiddenGapEndMs = trueMs;
  }

  onSent(): void {
    this.tally.messages += 1;
    this.#chain.onSent();
  }

  onFault(faults: readonly unknown[]): void {
    this.tally.failures += faults.length;
  }

  onSilence(node: number): void {
    this.tally.silences += 1;
    this.#watched.add(node);
  }

  onReturn(node: number): void {
    this.#watched.delete(node);
    this.#late.delete(node);
  }

  onReport({ name, kind, beganAtMs }: TickReport): void {
    this.#checkChain();
    if (name !== CHAIN || kind !== 'ran') return;
    this.tally.ticks += 1;
    if (this.#isHolding) this.tally.ticksWithClosedGate += 1;
    else this.#recover(beganAtMs);
    for (const node of this.#watched) this.#checkLate(node);
  }

  /** The law reports a broken chain at every look until it is repaired. It counts once. */
  #checkChain(): void {
    this.#failedNow = false;
    this.#chain.onMoment?.();
    if (this.#failedNow && !this.#isChainBroken) this.tally.chainFaults += 1;
    this.#isChainBroken = this.#failedNow;
  }

  onMarked(node: number): void {
    const { time, heartbeats, plan, clock } = this.#options;
    const nowMs = time.nowMs();
    if (this.#watched.has(node)) this.#checkLate(node);
    this.#watched.delete(node);
    this.#late.delete(node);
    const deliveredMs = heartbeats.lastMs(node, nowMs, 'delivered');
    const leastMs = this.#graceMs - this.#skewMs;
    const silentMs = nowMs - deliveredMs;
    const isWithinGrace = silentMs <= leastMs - clock.sizeSince(deliveredMs);
    if (isWithinGrace && !this.#hasPaused(node, nowMs)) {
      if (nowMs - this.#hiddenGapEndMs <= this.#graceMs) {
        this.tally.marksAfterHiddenGap += 1;
        return;
      }
      this.tally.falseMarks += 1;
      const during = FAULT_NAMES.filter((name) => overlaps(plan.episodes(name), deliveredMs, nowMs)).join(' and ');
      this.tally.falseMarksDuring[during] = (this.tally.falseMarksDuring[during] ?? 0) + 1;
      return;
    }
    this.tally.rightMarks += 1;
    if (isWithinGrace) this.tally.marksByOutage += 1;
    else if (silentMs <= leastMs) this.tally.marksEarlyBySteps += 1;
    this.#recordDetection(heartbeats.lastMs(node, nowMs), nowMs);
  }

  /** Whether the machine has, or had within one grace period, a pause of its own of over (grace - period). */
  #hasPaused(node: number, nowMs: number): boolean {
    const { heartbeats, clock } = this.#options;
    let untilMs = heartbeats.isSilent(node, nowMs) ? heartbeats.silentUntilMs(node) : nowMs;
    for (let looks = 0; looks < HEARTBEATS_MAX && untilMs > nowMs - this.#graceMs; looks += 1) {
      const fromMs = heartbeats.lastMs(node, Math.min(nowMs, untilMs - 1), 'delivered');
      const longestMs = this.#graceMs - this.#periodMs - this.#skewMs - clock.sizeSince(fromMs);
      if (untilMs - fromMs > longestMs) return true;
      untilMs = fromMs;
    }
    return false;
  }

  #recordDetection(lastMs: number, nowMs: number): void {
    const seconds = (nowMs - lastMs) / 1_000;
    const touching = this.#recoveries.filter(({ fromMs, recoveredMs }) => fromMs < nowMs && recoveredMs > lastMs);
    for (const name of new Set(touching.map((each) => each.name)))
      this.#faultTally(name).detectionSeconds.push(seconds);
    const calmMs = this.#calmSinceMs();
    if (touching.length === 0 && calmMs !== undefined && calmMs <= lastMs)
      this.tally.calmDetectionSeconds.push(seconds);
  }

  #recover(tickBeganAtMs: number): void {
    const nowMs = this.#options.time.nowMs();
    for (const recovery of this.#recoveries) {
      if (recovery.endMs > tickBeganAtMs || recovery.recoveredMs < Number.POSITIVE_INFINITY) continue;
      recovery.recoveredMs = nowMs;
      this.#faultTally(recovery.name).recoverySeconds.push((nowMs - recovery.endMs) / 1_000);
    }
  }

  /** No fault, and ticks in every period, since then. */
  #calmSinceMs(): number | undefined {
    const calmMs = this.#options.plan.calmSinceMs();
    const regularMs = this.#chain.regularSinceMs();
    return calmMs === undefined || regularMs === undefined ? undefined : Math.max(calmMs, regularMs);
  }

  #checkLate(node: number): void {
    const { time, heartbeats, clock } = this.#options;
    const calmMs = this.#calmSinceMs();
    if (calmMs === undefined || this.#late.has(node)) return;
    const nowMs = time.nowMs();
    const fromMs = Math.max(heartbeats.lastMs(node, nowMs), calmMs + 2 * this.#periodMs);
    const slackMs = EFFECT_MS + this.#skewMs + clock.sizeSince(fromMs - this.#graceMs);
    if (nowMs <= fromMs + this.#graceMs + this.#periodMs + slackMs) return;
    this.#late.add(node);
    this.tally.lateMarks += 1;
  }

  #faultTally(name: FaultName): FaultTally {
    const tally = this.tally.faults[name] ?? { episodes: 0, detectionSeconds: [], recoverySeconds: [] };
    this.tally.faults[name] = tally;
    return tally;
  }
}

const STATE_KEY = { table: 'control', pk: 'fleet', sk: 'state' } as const;

const recoveryOf = (name: FaultName, { fromMs, untilMs }: Episode): Recovery => ({
  name,
  fromMs,
  endMs: AT_ONCE.has(name) ? fromMs : untilMs,
  recoveredMs: Number.POSITIVE_INFINITY,
});
