/**
 * The laws of a long run. They use the true times of heartbeats and the episodes of the plan, and nothing that the
 * rules computed.
 *
 *   false mark  L1, L5: the node was marked although its machine sent a heartbeat at least every (grace - period)
 *               seconds,
 *               less the skew of two clocks and the steps of all clocks since. It makes no difference whether an outage
 *               of ours refused them. A machine counts as silent in a longer pause, and for one grace period after it.
 *               Not counted as false, but apart: marks within a grace period after ticks were missing for longer than
 *               the gate allows, while a step of all clocks back made the gap look shorter. Nothing stored shows it.
 *   late mark   L2: the node is not Unknown at the grace period, one period and the time of a tick after its last
 *               heartbeat; or after the last fault and two regular ticks, if that is later.
 *   profiles    at the next change of the policy, at least 40 minutes after the last one, each Node has the profile
 *               that its labels select.
 *   ticks       the chain sends no more messages than it claims slots, and ticks again in time after faults.
 *
 * A fault's recovery is the time from the end of an episode to the end of the first tick that marks nodes again: it
 * began after the episode, and the gate is open.
 */

import { stateKey } from '../../shared/fleet/fleet-store.ts';
import { DEFAULT_PROFILE } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { Item } from '../../shared/store/item-store.ts';
import { type Episode, FAULT_NAMES, type FaultName, type FaultPlan } from '../faults/catalogue.ts';
import type { TickReport } from '../faults/faulty-ticks.ts';
import { chainIsOne } from '../laws/ticks.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { ClockSteps } from './clock-steps.ts';
import type { DeployedPolicies } from './deployed-policies.ts';
import { overlaps } from './episodes.ts';
import type { Heartbeats } from './heartbeats.ts';
import { MarkBounds, type SilenceStart } from './mark-bounds.ts';
import { KINDS, type Kind } from './mixed-fleet.ts';

/** Largest difference between the clocks of two processes. Milliseconds. */
const SKEW_MAX_MS = 2_000;
/** Faults that act at the beginning of an episode. */
const AT_ONCE: ReadonlySet<FaultName> = new Set(['clockJump', 'restart']);
const CHAIN = 'node-monitor';

export interface FaultTally {
  episodes: number;
  /**
   * Seconds from the last heartbeat to the mark, of nodes that were silent while it lasted or until it was recovered
   * from.
   */
  readonly detectionSeconds: number[];
  /** Seconds from the end of an episode until nodes are marked again. */
  readonly recoverySeconds: number[];
}

/** Figures of the machines of one kind. */
export interface ProfileTally {
  nodeHours: number;
  falseMarks: number;
  lateMarks: number;
  marksAfterHiddenGap: number;
  rightMarks: number;
  /** Marks of machines that sent heartbeats, which the network lost or delayed. */
  marksByNetwork: number;
  /** Seconds from the last heartbeat to the mark. */
  readonly detectionSeconds: number[];
  /** The same without faults, under the first policy, of machines that have followed their profile since before. */
  readonly calmDetectionSeconds: number[];
  /** The time for the same machines under every policy: from the end of the grace period to the mark. */
  readonly beyondGraceSeconds: number[];
  /** From the end of a broken promise. */
  readonly promiseDetectionSeconds: number[];
  /** From the creation of a Node that never had a status. */
  readonly startDetectionSeconds: number[];
  /** Seconds from the end of an episode of any fault until its nodes are marked again. */
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
  /** Right by the reports of witnesses, early without them. */
  marksShortened: number;
  /** Those of machines that were about to send a heartbeat: the network lost or delayed some. */
  marksShortenedOfSenders: number;
  falseMarks: number;
  /** The same by the faults that lasted then. */
  readonly falseMarksDuring: Record<string, number>;
  silences: number;
  /** L2, while no fault lasts. */
  lateMarks: number;
  /** Nodes without the profile that their labels select. */
  wrongProfiles: number;
  /** The chain sent too much, or did not tick in calm. */
  chainFaults: number;
  /** Calls and ticks that failed. The chain continues after them. */
  failures: number;
  /** Seconds from the last heartbeat to the mark without any fault. */
  readonly calmDetectionSeconds: number[];
  readonly faults: Partial<Record<FaultName, FaultTally>>;
  readonly profiles: Partial<Record<Kind, ProfileTally>>;
}

export interface LongLaws {
  onMarked(node: number): void;
  /** The machine registered as a new Node. */
  onReplaced(node: number): void;
  /** Its new Node has no status, and it sends no heartbeat for now. */
  onStarting(node: number): void;
  /** It will announce a silence that ends then. */
  onPromise(node: number, untilMs: number): void;
  /** Withdrawn, or ended by a heartbeat. */
  onPromiseEnded(node: number): void;
  /** The name of its profile is stored. */
  onProfile(node: number): void;
  onRelabelled(node: number, before: Kind): void;
  /** A new policy is about to be deployed. */
  onRoll(wrongProfiles: number): void;
  onState(state: Item): void;
  onReport(report: TickReport): void;
  onSent(): void;
  onFault(faults: readonly unknown[]): void;
  onSilence(node: number): void;
  onReturn(node: number): void;
  /** The figures up to now, without hours. */
  current(): LongTally;
  tally(): LongTally;
}

export interface LongLawsOptions {
  readonly policies: DeployedPolicies;
  readonly kindOf: (node: number) => Kind;
  readonly nodes: number;
  readonly endMs: number;
  readonly time: VirtualTime;
  readonly startMs: number;
  readonly plan: FaultPlan;
  readonly clock: ClockSteps;
  readonly heartbeats: Heartbeats;
  /** Since when witnesses agree that a machine is silent (site-reports.ts). Default: none report any. */
  readonly accusedSinceMs?: ((node: number, afterMs: number) => number | undefined) | undefined;
  /** To examine one. */
  readonly onWrongMark?: ((mark: WrongMark) => void) | undefined;
}

export interface WrongMark {
  readonly is: 'false' | 'late';
  readonly node: number;
  readonly kind: Kind;
  /** Names of the faults since its last heartbeat. */
  readonly during: string;
  readonly nowMs: number;
  readonly start: SilenceStart;
  /** The longest interval that the machine followed since then. */
  readonly intervalMs: number;
}

export function longLaws(options: LongLawsOptions): LongLaws {
  const checks = new LongChecks(options);
  return {
    onMarked: (node) => checks.onMarked(node),
    onReplaced: (node) => checks.onReplaced(node),
    onStarting: (node) => checks.onStarting(node),
    onPromise: (node, untilMs) => checks.onPromise(node, untilMs),
    onPromiseEnded: (node) => checks.onPromiseEnded(node),
    onProfile: (node) => checks.onProfile(node),
    onRelabelled: (node, before) => checks.onRelabelled(node, before),
    onRoll: (wrongProfiles) => checks.onRoll(wrongProfiles),
    onState: (state) => checks.onState(state),
    onReport: (report) => checks.onReport(report),
    onSent: () => checks.onSent(),
    onFault: (faults) => checks.onFault(faults),
    onSilence: (node) => checks.onSilence(node),
    onReturn: (node) => checks.onReturn(node),
    current: () => checks.current,
    tally: () => checks.sumUp(),
  };
}

/** An episode of a fault, and when nodes were marked again after it. */
interface Recovery {
  readonly name: FaultName;
  readonly fromMs: number;
  readonly endMs: number;
  recoveredMs: number;
  /** Kinds of machines with nodes that were marked again. */
  readonly kinds: Set<Kind>;
}

class LongChecks {
  readonly #options: LongLawsOptions;
  readonly #chain: ReturnType<typeof chainIsOne>;
  readonly #bounds: MarkBounds;
  /** By the beginning of the episode. */
  readonly #recoveries: Recovery[];
  /** Kinds of machines in this fleet. */
  readonly #kinds: readonly Kind[];
  /** Since when the machine is of its kind. */
  readonly #kindSinceMs: Float64Array;
  /** Silent machines. Their Nodes are not marked. */
  readonly #watched = new Set<number>();
  readonly #late = new Set<number>();
  #slot: unknown;
  /** The last finished tick: by the clock of its process, and true time. */
  #finished: { readonly clockMs: number; readonly trueMs: number } | undefined;
  /** End of the last gap that a step of all clocks hid, from the gate of each kind. True time. */
  readonly #hiddenGapEndMs = new Map<Kind, number>();
  /** Kinds with a closed gate. */
  #closed: ReadonlySet<Kind> = new Set();
  #isHolding = false;
  #failedNow = false;
  #isChainBroken = false;
  readonly #tally: LongTally = {
    ...{ ticks: 0, messages: 0, claims: 0, ticksWithClosedGate: 0, silences: 0, chainFaults: 0, failures: 0 },
    ...{ rightMarks: 0, marksByOutage: 0, marksAfterHiddenGap: 0, marksEarlyBySteps: 0 },
    ...{ marksShortened: 0, marksShortenedOfSenders: 0 },
    ...{ falseMarks: 0, falseMarksDuring: {}, lateMarks: 0, wrongProfiles: 0 },
    calmDetectionSeconds: [],
    faults: {},
    profiles: {},
  };

  constructor(options: LongLawsOptions) {
    this.#options = options;
    const { policies, plan, time, startMs, nodes } = options;
    const skewMs = plan.has('skew') ? SKEW_MAX_MS : 0;
    this.#bounds = new MarkBounds({ ...options, skewMs });
    this.#kinds = policies.current.profiles.length === 0 ? [DEFAULT_PROFILE] : KINDS;
    this.#kindSinceMs = new Float64Array(nodes).fill(startMs);
    this.#recoveries = FAULT_NAMES.flatMap((name) => plan.episodes(name).map((episode) => recoveryOf(name, episode)));
    for (const { name } of this.#recoveries) this.#faultTally(name).episodes += 1;
    const most = (of: (policy: Policy) => number): number => of(policies.current);
    const fail = (): void => {
      this.#failedNow = true;
    };
    this.#chain = chainIsOne({ plan, nowMs: () => time.nowMs(), most, fail }, startMs);
  }

  get current(): LongTally {
    return this.#tally;
  }

  /** At the end of the run. */
  sumUp(): LongTally {
    const { kindOf, nodes, endMs } = this.#options;
    for (let node = 0; node < nodes; node += 1) this.#countHours(node, kindOf(node), endMs);
    return this.#tally;
  }

  onState(state: Item): void {
    const { slot, holding, doneAt } = state;
    if (typeof doneAt === 'number') this.#onFinished(doneAt);
    this.#isHolding = holding !== undefined;
    this.#closed = this.#isHolding ? closedKinds(String(state['gate'])) : new Set();
    if (slot === this.#slot) return;
    this.#tally.claims += 1;
    const change = {
      key: stateKey,
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
    for (const kind of this.#kinds) {
      const gapMaxMs = this.#bounds.tickGapMaxMs(kind);
      const isHidden = trueMs - before.trueMs > gapMaxMs && clockMs - before.clockMs <= gapMaxMs;
      if (isHidden) this.#hiddenGapEndMs.set(kind, trueMs);
    }
  }

  onSent(): void {
    this.#tally.messages += 1;
    this.#chain.onSent();
  }

  onFault(faults: readonly unknown[]): void {
    this.#tally.failures += faults.length;
  }

  onSilence(node: number): void {
    this.#tally.silences += 1;
    this.#watched.add(node);
  }

  onReturn(node: number): void {
    this.#watched.delete(node);
    this.#late.delete(node);
    this.#bounds.onReturn(node, this.#options.time.nowMs());
  }

  onReplaced(node: number): void {
    this.#bounds.onReplaced(node);
  }

  onStarting(node: number): void {
    this.#watched.add(node);
    this.#bounds.onStarting(node, this.#options.time.nowMs());
  }

  onPromise(node: number, untilMs: number): void {
    this.#bounds.onPromise(node, untilMs);
  }

  onPromiseEnded(node: number): void {
    this.#bounds.onPromiseEnded(node, this.#options.time.nowMs());
  }

  onProfile(node: number): void {
    this.#bounds.onProfile(node, this.#options.time.nowMs());
  }

  onRelabelled(node: number, before: Kind): void {
    this.#countHours(node, before, this.#options.time.nowMs());
  }

  onRoll(wrongProfiles: number): void {
    this.#tally.wrongProfiles += wrongProfiles;
  }

  onReport({ name, kind, beganAtMs }: TickReport): void {
    this.#checkChain();
    if (name !== CHAIN || kind !== 'ran') return;
    this.#tally.ticks += 1;
    if (this.#isHolding) this.#tally.ticksWithClosedGate += 1;
    this.#recover(beganAtMs);
    for (const node of this.#watched) this.#checkLate(node);
  }

  /** The law reports a broken chain at every look until it is repaired. It counts once. */
  #checkChain(): void {
    this.#failedNow = false;
    this.#chain.onMoment?.();
    if (this.#failedNow && !this.#isChainBroken) this.#tally.chainFaults += 1;
    this.#isChainBroken = this.#failedNow;
  }

  onMarked(node: number): void {
    const { time, kindOf, heartbeats } = this.#options;
    const nowMs = time.nowMs();
    const kind = kindOf(node);
    if (this.#watched.has(node)) this.#checkLate(node);
    this.#watched.delete(node);
    this.#late.delete(node);
    const verdict = this.#bounds.verdict(node, nowMs);
    const profile = this.#profileTally(kind);
    if (verdict === 'false') {
      this.#countFalse(node, nowMs);
      return;
    }
    this.#tally.rightMarks += 1;
    profile.rightMarks += 1;
    if (verdict === 'byOutage') this.#tally.marksByOutage += 1;
    else if (verdict === 'bySteps') this.#tally.marksEarlyBySteps += 1;
    else if (verdict === 'shortened') {
      this.#tally.marksShortened += 1;
      if (!heartbeats.isSilent(node, nowMs)) this.#tally.marksShortenedOfSenders += 1;
    }
    const start = this.#bounds.silenceStart(node, nowMs);
    if (start.of === 'heartbeat' && !heartbeats.isSilent(node, nowMs)) profile.marksByNetwork += 1;
    this.#recordDetection(node, start, nowMs);
  }

  #countFalse(node: number, nowMs: number): void {
    const { heartbeats, plan, kindOf } = this.#options;
    const kind = kindOf(node);
    const hiddenMs = this.#hiddenGapEndMs.get(kind) ?? Number.NEGATIVE_INFINITY;
    const isHidden = nowMs - hiddenMs <= this.#bounds.graceMs(kind);
    const count = isHidden ? 'marksAfterHiddenGap' : 'falseMarks';
    this.#tally[count] += 1;
    this.#profileTally(kind)[count] += 1;
    if (isHidden) return;
    const deliveredMs = heartbeats.lastMs(node, nowMs, 'delivered');
    const during = FAULT_NAMES.filter((name) => overlaps(plan.episodes(name), deliveredMs, nowMs)).join(' and ');
    this.#tally.falseMarksDuring[during] = (this.#tally.falseMarksDuring[during] ?? 0) + 1;
    this.#report('false', node, during);
  }

  #recordDetection(node: number, { of, atMs }: SilenceStart, nowMs: number): void {
    const profile = this.#profileTally(this.#options.kindOf(node));
    const seconds = (nowMs - atMs) / 1_000;
    if (of === 'promise') profile.promiseDetectionSeconds.push(seconds);
    if (of === 'creation') profile.startDetectionSeconds.push(seconds);
    if (of !== 'heartbeat') return;
    profile.detectionSeconds.push(seconds);
    const touching = this.#recoveries.filter(({ fromMs, recoveredMs }) => fromMs < nowMs && recoveredMs > atMs);
    for (const name of new Set(touching.map((each) => each.name)))
      this.#faultTally(name).detectionSeconds.push(seconds);
    const calmMs = this.#calmSinceMs();
    if (touching.length > 0 || calmMs === undefined || calmMs > atMs) return;
    this.#tally.calmDetectionSeconds.push(seconds);
    const graceMs = this.#bounds.followedGraceMs(node, atMs);
    if (graceMs === undefined) return;
    profile.beyondGraceSeconds.push(seconds - graceMs / 1_000);
    if (this.#options.policies.isFirst) profile.calmDetectionSeconds.push(seconds);
  }

  /** The end of a tick: an episode is recovered from once every gate is open, and for each kind once its own is. */
  #recover(tickBeganAtMs: number): void {
    const nowMs = this.#options.time.nowMs();
    for (const recovery of this.#recoveries) {
      if (recovery.endMs > tickBeganAtMs || recovery.recoveredMs < Number.POSITIVE_INFINITY) continue;
      const seconds = (nowMs - recovery.endMs) / 1_000;
      for (const kind of this.#kinds) {
        if (this.#closed.has(kind) || recovery.kinds.has(kind)) continue;
        recovery.kinds.add(kind);
        this.#profileTally(kind).recoverySeconds.push(seconds);
      }
      if (this.#isHolding) continue;
      recovery.recoveredMs = nowMs;
      this.#faultTally(recovery.name).recoverySeconds.push(seconds);
    }
  }

  /** No fault, ticks in every period, and one policy, since then. */
  #calmSinceMs(): number | undefined {
    const { plan, policies } = this.#options;
    const calmMs = plan.calmSinceMs();
    const regularMs = this.#chain.regularSinceMs();
    return calmMs === undefined || regularMs === undefined
      ? undefined
      : Math.max(calmMs, regularMs, policies.settledAtMs);
  }

  #checkLate(node: number): void {
    const { time, kindOf } = this.#options;
    const calmMs = this.#calmSinceMs();
    if (calmMs === undefined || this.#late.has(node)) return;
    const nowMs = time.nowMs();
    if (nowMs <= this.#bounds.dueMs(node, nowMs, calmMs)) return;
    this.#late.add(node);
    this.#tally.lateMarks += 1;
    const kind = kindOf(node);
    this.#profileTally(kind).lateMarks += 1;
    this.#report('late', node, '');
  }

  #report(is: WrongMark['is'], node: number, during: string): void {
    const { time, kindOf, heartbeats, onWrongMark } = this.#options;
    const nowMs = time.nowMs();
    const start = this.#bounds.silenceStart(node, nowMs);
    const intervalMs = heartbeats.longestIntervalMs(node, start.atMs);
    onWrongMark?.({ is, node, kind: kindOf(node), during, nowMs, start, intervalMs });
  }

  #countHours(node: number, kind: Kind, untilMs: number): void {
    this.#profileTally(kind).nodeHours += (untilMs - this.#kindSinceMs[node]!) / 3_600_000;
    this.#kindSinceMs[node] = untilMs;
  }

  #faultTally(name: FaultName): FaultTally {
    const tally = this.#tally.faults[name] ?? { episodes: 0, detectionSeconds: [], recoverySeconds: [] };
    this.#tally.faults[name] = tally;
    return tally;
  }

  #profileTally(kind: Kind): ProfileTally {
    const tally = this.#tally.profiles[kind] ?? {
      ...{ nodeHours: 0, falseMarks: 0, lateMarks: 0, marksAfterHiddenGap: 0, rightMarks: 0, marksByNetwork: 0 },
      ...{ detectionSeconds: [], calmDetectionSeconds: [], beyondGraceSeconds: [] },
      ...{ promiseDetectionSeconds: [], startDetectionSeconds: [], recoverySeconds: [] },
    };
    this.#tally.profiles[kind] = tally;
    return tally;
  }
}

const recoveryOf = (name: FaultName, { fromMs, untilMs }: Episode): Recovery => ({
  name,
  fromMs,
  endMs: AT_ONCE.has(name) ? fromMs : untilMs,
  recoveredMs: Number.POSITIVE_INFINITY,
  kinds: new Set(),
});

/** A profile that the stored gate lacks has the gate of `default`. What a profile lacks is as in the whole gate. */
function closedKinds(gate: string): ReadonlySet<Kind> {
  const { reasons, profiles = {} } = JSON.parse(gate) as {
    readonly reasons: readonly string[];
    readonly profiles?: Readonly<Record<string, { readonly reasons?: readonly string[] }>>;
  };
  return new Set(
    KINDS.filter((kind) => ((profiles[kind] ?? profiles[DEFAULT_PROFILE])?.reasons ?? reasons).length > 0),
  );
}
