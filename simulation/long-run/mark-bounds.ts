/**
 * When a node may be marked at the earliest, and must be at the latest: from the true times of its heartbeats, promises
 * and labels, and nothing that the rules computed.
 *
 * Grace periods are those of the profile that the label of a machine selects. While a policy is rolled out and the
 * Nodes are evaluated again, the shorter one applies to false marks and the longer one to late marks.
 *
 *   changed interval   A machine may wait for as long as its longest interval since its last heartbeat, even if that is
 *                      longer than its new grace period.
 *   promise            Silence before the end of a promise does not count. A mark while it lasts is false.
 *   new Node           A Node that never had a status has its startup grace period from its creation.
 *   witnesses          A machine that a relay and a second machine report since its last heartbeat has 8 s from then,
 *                      but at least the longest time between two heartbeats of a machine that sends them.
 */
import { type Policy, steadySeconds } from '../../shared/fleet/policy.ts';
import { tickGapMaxMs } from '../../shared/ticks/tick.ts';
import { EFFECT_MS } from '../laws/law.ts';
import type { ClockSteps } from './clock-steps.ts';
import type { DeployedPolicies } from './deployed-policies.ts';
import type { Heartbeats } from './heartbeats.ts';
import { KINDS, type Kind, policyOfKind } from './mixed-fleet.ts';

/** An answer with the old interval may be on its way when the profile changes. Milliseconds. */
const ANSWERED_WITHIN_MS = 10_000;
/** By how much a wait is longer than the interval that was asked for: jitter and network. */
const INTERVAL_SHARE_MAX = 1.05;
const DELIVERED_WITHIN_MS = 100;
/** A promise is stored in whole seconds. Milliseconds. */
const PROMISE_PRECISION_MS = 1_000;
/** Bound on the heartbeats of one grace period that are looked at. */
const HEARTBEATS_MAX = 100;

/**
 * What a mark counts as.
 *   byOutage   right: the machine made a pause of its own of over (grace - period). A heartbeat at the beginning or end
 *              of it did not count: an outage of ours refused it, or it arrived during the mark
 *   bySteps    right by the clocks of the processes, early by true time: all clocks stepped forward
 *   shortened  right by the reports of witnesses, early without them
 */
export type MarkVerdict = 'false' | 'right' | 'byOutage' | 'bySteps' | 'shortened';

/** What the silence of a node is counted from. */
export interface SilenceStart {
  readonly of: 'heartbeat' | 'promise' | 'creation';
  readonly atMs: number;
}

export interface MarkBoundsOptions {
  readonly policies: DeployedPolicies;
  readonly kindOf: (node: number) => Kind;
  readonly nodes: number;
  readonly heartbeats: Heartbeats;
  readonly clock: ClockSteps;
  /** Largest difference between the clocks of two processes. Milliseconds. */
  readonly skewMs: number;
  /** Since when witnesses agree that a machine is silent (site-reports.ts). Default: none report any. */
  readonly accusedSinceMs?: ((node: number, afterMs: number) => number | undefined) | undefined;
}

export class MarkBounds {
  readonly #options: MarkBoundsOptions;
  /** Machines that registered without a status: when. */
  readonly #startingSinceMs = new Map<number, number>();
  readonly #firstStatusMs: Float64Array;
  /** End of the last promise; in the future while it stands. */
  readonly #promiseEndMs: Float64Array;
  readonly #profileChangedMs: Float64Array;

  constructor(options: MarkBoundsOptions) {
    this.#options = options;
    const never = (): Float64Array => new Float64Array(options.nodes).fill(Number.NEGATIVE_INFINITY);
    this.#firstStatusMs = never();
    this.#promiseEndMs = never();
    this.#profileChangedMs = never();
  }

  onReplaced(node: number): void {
    this.#startingSinceMs.delete(node);
    for (const times of [this.#firstStatusMs, this.#promiseEndMs, this.#profileChangedMs]) {
      times[node] = Number.NEGATIVE_INFINITY;
    }
  }

  onStarting(node: number, nowMs: number): void {
    this.#startingSinceMs.set(node, nowMs);
  }

  onReturn(node: number, nowMs: number): void {
    if (this.#startingSinceMs.delete(node)) this.#firstStatusMs[node] = nowMs;
  }

  onPromise(node: number, untilMs: number): void {
    this.#promiseEndMs[node] = untilMs;
  }

  onPromiseEnded(node: number, nowMs: number): void {
    this.#promiseEndMs[node] = Math.min(this.#promiseEndMs[node]!, nowMs);
  }

  onProfile(node: number, nowMs: number): void {
    this.#profileChangedMs[node] = nowMs;
  }

  silenceStart(node: number, nowMs: number): SilenceStart {
    const createdMs = this.#startingSinceMs.get(node);
    if (createdMs !== undefined) return { of: 'creation', atMs: createdMs };
    const lastMs = this.#options.heartbeats.lastMs(node, nowMs);
    const promisedMs = this.#promiseEndMs[node]!;
    return promisedMs > lastMs ? { of: 'promise', atMs: promisedMs } : { of: 'heartbeat', atMs: lastMs };
  }

  verdict(node: number, nowMs: number): MarkVerdict {
    const { heartbeats, clock, skewMs } = this.#options;
    const createdMs = this.#startingSinceMs.get(node);
    if (createdMs !== undefined) {
      const allowedMs = this.#least(node, startupMsOf) - skewMs - clock.sizeSince(createdMs);
      return nowMs - createdMs <= allowedMs ? 'false' : 'right';
    }
    const graceMs = this.#least(node, graceMsOf);
    const deliveredMs = heartbeats.lastMs(node, nowMs, 'delivered');
    const promisedMs = this.#promiseEndMs[node]!;
    if (promisedMs > deliveredMs) {
      return nowMs - promisedMs <= graceMs - this.#promiseSlackMs(promisedMs, nowMs) ? 'false' : 'right';
    }
    const allowedMs = Math.max(graceMs - skewMs, this.#waitMs(node, deliveredMs));
    const silentMs = nowMs - deliveredMs;
    if (silentMs > allowedMs) return 'right';
    if (silentMs > this.#accusedMs(node, deliveredMs)) return 'shortened';
    if (silentMs > allowedMs - clock.sizeSince(deliveredMs)) return 'bySteps';
    if (this.#hasPaused(node, nowMs)) return 'byOutage';
    return 'false';
  }

  /** How long a machine that witnesses report may be silent; Infinity: they do not. Milliseconds. */
  #accusedMs(node: number, deliveredMs: number): number {
    const { accusedSinceMs, skewMs } = this.#options;
    // A heartbeat voids the reports before it.
    const sinceMs = accusedSinceMs?.(node, deliveredMs - skewMs);
    if (sinceMs === undefined) return Number.POSITIVE_INFINITY;
    const witnessMs = sinceMs - deliveredMs + this.#least(node, witnessMsOf);
    return Math.max(this.#least(node, steadyMsOf), witnessMs) - skewMs;
  }

  /** When the node is Unknown at the latest. `calmMs`: no fault, regular ticks and one policy since then. */
  dueMs(node: number, nowMs: number, calmMs: number): number {
    const { clock, heartbeats, skewMs } = this.#options;
    const periodMs = this.#most(node, periodMsOf);
    const { of, atMs } = this.silenceStart(node, nowMs);
    const graceMs = this.#most(node, of === 'creation' ? startupMsOf : graceMsOf);
    const startMs = of === 'promise' ? atMs + this.#promiseSlackMs(atMs, nowMs) : atMs;
    // Only a heartbeat has an answer: the end of a promise after the change proves nothing about the interval.
    const learnedMs = this.#learnedMs(node, heartbeats.lastMs(node, nowMs));
    const fromMs = Math.max(startMs, calmMs + 2 * periodMs, learnedMs);
    return fromMs + graceMs + periodMs + EFFECT_MS + skewMs + clock.sizeSince(fromMs - graceMs);
  }

  /**
   * Longest gap between ticks that the gate of this kind allows: the shortest one of all policies in use. Milliseconds.
   */
  tickGapMaxMs(kind: Kind): number {
    return Math.min(...this.#policiesOf(kind).map(tickGapMaxMs));
  }

  /** The grace period of the machine; undefined: its profile has changed, and it may not follow the new one yet. */
  followedGraceMs(node: number, lastMs: number): number | undefined {
    const isFollowed = lastMs > this.#profileChangedMs[node]! + ANSWERED_WITHIN_MS;
    return isFollowed ? this.graceMs(this.#options.kindOf(node)) : undefined;
  }

  graceMs(kind: Kind): number {
    return Math.max(...this.#policiesOf(kind).map(graceMsOf));
  }

  /** The end of a promise is a time of day, compared with the clock of a process. */
  #promiseSlackMs(endMs: number, nowMs: number): number {
    const { clock, skewMs } = this.#options;
    return PROMISE_PRECISION_MS + skewMs + Math.abs(clock.aheadMs(nowMs)) + clock.sizeSince(endMs);
  }

  /** When a live machine follows its new profile at the latest. */
  #learnedMs(node: number, lastMs: number): number {
    const changedMs = this.#profileChangedMs[node]!;
    if (lastMs > changedMs + ANSWERED_WITHIN_MS) return Number.NEGATIVE_INFINITY;
    const longestMs = Math.max(...KINDS.flatMap((kind) => this.#policiesOf(kind).map(beatMsOf)));
    return changedMs + ANSWERED_WITHIN_MS + longestMs;
  }

  /** How long a machine that does what it was asked for may wait for its next heartbeat. */
  #waitMs(node: number, sinceMs: number): number {
    return this.#options.heartbeats.longestIntervalMs(node, sinceMs) * INTERVAL_SHARE_MAX + DELIVERED_WITHIN_MS;
  }

  /** Whether the machine has, or had within one grace period, a pause of its own of over (grace - period). */
  #hasPaused(node: number, nowMs: number): boolean {
    const { heartbeats, clock, skewMs } = this.#options;
    const graceMs = this.#least(node, graceMsOf);
    const steadyMs = graceMs - this.#most(node, periodMsOf) - skewMs;
    const sinceMs = Math.max(nowMs - graceMs, this.#firstStatusMs[node]!);
    let untilMs = heartbeats.isSilent(node, nowMs) ? heartbeats.silentUntilMs(node) : nowMs;
    for (let looks = 0; looks < HEARTBEATS_MAX && untilMs > sinceMs; looks += 1) {
      const fromMs = heartbeats.lastMs(node, Math.min(nowMs, untilMs - 1), 'delivered');
      const longestMs = Math.max(steadyMs, this.#waitMs(node, fromMs)) - clock.sizeSince(fromMs);
      if (untilMs - fromMs > longestMs) return true;
      untilMs = fromMs;
    }
    return false;
  }

  #policiesOf(kind: Kind): readonly Policy[] {
    return this.#options.policies.inUse().map((policy) => policyOfKind(policy, kind));
  }

  #least(node: number, of: (policy: Policy) => number): number {
    return Math.min(...this.#policiesOf(this.#options.kindOf(node)).map(of));
  }

  #most(node: number, of: (policy: Policy) => number): number {
    return Math.max(...this.#policiesOf(this.#options.kindOf(node)).map(of));
  }
}

const graceMsOf = (policy: Policy): number => policy.nodeMonitorGracePeriodSeconds * 1_000;
const periodMsOf = (policy: Policy): number => policy.nodeMonitorPeriodSeconds * 1_000;
const witnessMsOf = (policy: Policy): number => policy.witnessGraceSeconds * 1_000;
const steadyMsOf = (policy: Policy): number => steadySeconds(policy.beatIntervalSeconds) * 1_000;
const beatMsOf = (policy: Policy): number => policy.beatIntervalSeconds * 1_000;
/** A Node without a status has the longer one of both grace periods. */
const startupMsOf = (policy: Policy): number =>
  1_000 * Math.max(policy.nodeStartupGracePeriodSeconds, policy.nodeMonitorGracePeriodSeconds);
