/**
 * Ticks. Slots: when a controller acts, and why it acts once. `runTick`: how.
 *
 * Time is divided into slots of one period. A function names the slot by its own clock, and claims it with one
 * conditional write, which also yields the fence, a number that grows with every claim. The loser exits. Claims only
 * move forward. So a message may come late, twice or at once with another: no scheduled time in it decides anything.
 */
import type { Clock } from '../clock.ts';
import type { Policy } from '../fleet/policy.ts';
import { SCHEDULER_PRECISION_SECONDS, TICK_AGE } from '../functions/tick-metrics.ts';
import type { Log, Meter } from '../observability/log.ts';
import { below, number } from '../store/layout.ts';
import { type WorkBudget, workUntil } from './bounded-work.ts';

/**
 * A slot may be claimed this long before it begins. Milliseconds. The message of a slot is delivered at its start by
 * the clock of the function that sent it. The clock of the function that receives it may be behind: without this
 * allowance it would name the slot before, which is claimed, and the chain would end.
 */
export const SLOT_EARLY_MAX_MS = 2_000;

/** Number of the slot at this moment. `periodSeconds` divides a minute. */
export const slotOf = (atMs: number, periodSeconds: number): number => Math.floor(atMs / (periodSeconds * 1_000));

/** The slot that a function may claim now. */
export const currentSlot = (nowMs: number, periodSeconds: number): number =>
  slotOf(nowMs + SLOT_EARLY_MAX_MS, periodSeconds);

/** When a slot begins. Epoch milliseconds. */
export const slotStartMs = (slot: number, periodSeconds: number): number => slot * periodSeconds * 1_000;

/**
 * Time until a slot begins, for a delayed message: whole seconds, rounded up, since a message that comes before its
 * slot is lost. Source: Amazon SQS API Reference, SendMessage (DelaySeconds, 0 to 900).
 */
export const secondsToSlot = (slot: number, nowMs: number, periodSeconds: number): number =>
  Math.max(0, Math.ceil((slotStartMs(slot, periodSeconds) - nowMs) / 1_000));

/** Whether the chain of ticks is alive: the last claim is at most two periods old (node-monitor/chain.ts). */
export const isTicking = (at: {
  readonly claimedAtMs: number | undefined;
  readonly nowMs: number;
  readonly periodSeconds: number;
}): boolean => at.claimedAtMs !== undefined && Math.abs(at.nowMs - at.claimedAtMs) <= 2 * at.periodSeconds * 1_000;

/**
 * due: to be claimed. stale: delayed by an outage of ours, or replayed. It is dropped, because nothing depends on how
 * many ticks ran.
 */
export const slotVerdict = (at: {
  readonly slot: number;
  readonly nowMs: number;
  readonly periodSeconds: number;
}): 'due' | 'stale' =>
  at.nowMs - slotStartMs(at.slot, at.periodSeconds) > (SCHEDULER_PRECISION_SECONDS + at.periodSeconds) * 1_000
    ? 'stale'
    : 'due';

/** Alarms need one value per minute. A second value per minute covers the loss of the first. */
const AGE_REPORT_INTERVAL_MS = 30_000;

/**
 * Whether a tick reports its age: the first that runs in each half minute, and each that is later than a scheduler may
 * be. Not every tick, because log lines are billed.
 */
export const reportsAge = (at: {
  readonly slot: number;
  /** The slot that was claimed before it. @default slot - 1 */
  readonly slotBefore?: number | undefined;
  readonly periodSeconds: number;
  readonly ageMs: number;
}): boolean => {
  const half = (slot: number): number => Math.floor(slotStartMs(slot, at.periodSeconds) / AGE_REPORT_INTERVAL_MS);
  return half(at.slot) !== half(at.slotBefore ?? at.slot - 1) || at.ageMs > SCHEDULER_PRECISION_SECONDS * 1_000;
};

/** A slot that is claimed. */
export interface ClaimedSlot {
  readonly slot: number;
  readonly periodSeconds: number;
}

/** When the last claimed slot began. Seconds; absent before the first claim. */
export const CLAIMED_SECONDS = number('s');

/**
 * The claim as data, in the words of the item store: written, the answer's `fence` is the fencing number; refused,
 * exit. Slots are compared by their beginning: after a longer period in the policy their numbers are smaller.
 */
export function claimSlot({ slot, periodSeconds }: ClaimedSlot) {
  const beginSeconds = slot * periodSeconds;
  return {
    set: { slot, [CLAIMED_SECONDS.name]: beginSeconds },
    add: { fence: 1 },
    when: below(CLAIMED_SECONDS, beginSeconds),
  };
}

/**
 * Whole periods between two ticks, by our clock, rounded: a tick comes some tenths of a second early or late, and that
 * is not a missed tick.
 */
export const periodsBetween = (earlierMs: number, laterMs: number, periodSeconds: number): number =>
  Math.round((laterMs - earlierMs) / (periodSeconds * 1_000));

/** A tick may come this share of its period late without being missed. */
const LATE_PERIODS_MAX = 1.5;

export type TickGapPolicy = Pick<Policy, 'nodeMonitorPeriodSeconds' | 'nodeMonitorGracePeriodSeconds'>;

/**
 * Longest gap between two finished ticks of node-monitor that is no missed tick (D9): half of the grace period, which
 * is the shortest silence for which a node is marked. Milliseconds.
 *
 * The gap is measured in seconds of the grace period, not in periods, because that is what a gap puts at risk. A grace
 * period is at least two heartbeat intervals. Let the last heartbeat before an outage be one interval old. At the first
 * tick after the outage the node has been silent for at most half a grace period and one interval: not over a grace
 * period. A grace period of barely two periods leaves no room for a tick that is late by tenths of a second, so the gap
 * is at least one and a half periods.
 */
export const tickGapMaxMs = (policy: TickGapPolicy): number =>
  1_000 * Math.max(policy.nodeMonitorGracePeriodSeconds / 2, LATE_PERIODS_MAX * policy.nodeMonitorPeriodSeconds);

/** Whether ticks were missed: more than the longest gap since the last one that finished, or none known at all (D9). */
export const ticksWereMissing = (at: {
  readonly lastTickAtMs: number | undefined;
  readonly nowMs: number;
  /** `tickGapMaxMs` of the policy. */
  readonly gapMaxMs: number;
}): boolean => at.lastTickAtMs === undefined || at.nowMs - at.lastTickAtMs > at.gapMaxMs;

/** Reserve at the end of a period: a tick ends before the next one begins. Milliseconds. */
export const PERIOD_RESERVE_MS = 500;

export interface Tick {
  readonly slot: number;
  /** Time limit of the caller. Milliseconds; a tick uses about one period of it. */
  readonly budgetMs?: number;
}

/** A tick that did not run. */
export type SkippedTick =
  /** Delayed by an outage of the controller; dropped without a claim. */
  | { readonly kind: 'stale' }
  /** Another tick claimed this slot, or a later one. */
  | { readonly kind: 'lost' };

/** Parts of a tick failed. All other work is done; the next tick repeats the failed parts. */
export class TickFault extends AggregateError {
  override readonly name = 'TickFault';
  /** Single objects failed. False: the work as a whole did, or what it needs could not be read. */
  readonly hasRun: boolean;
  constructor(errors: readonly unknown[], message: string, { hasRun }: { readonly hasRun: boolean }) {
    super(errors, message);
    this.hasRun = hasRun;
  }
}

/** Whether the tick that ended with this error ran: an object that fails each time is not a controller that stands. */
export const ranNevertheless = (error: unknown): boolean => error instanceof TickFault && error.hasRun;

export interface RunningTick {
  readonly slot: number;
  /** Start of the tick. Epoch milliseconds. */
  readonly nowMs: number;
  /** Time for the work: to the end of the period, and at least `leastShare` of a period from now. @default 0 */
  budget(leastShare?: number): WorkBudget;
  /** Faults of single objects. The work adds to it and continues with the other objects. */
  readonly faults: unknown[];
}

export type Claim<Claimed> = { readonly kind: 'claimed'; readonly claimed: Claimed } | 'lost';

export interface TickSteps<World, Claimed, Report> {
  readonly controller: string;
  readonly periodSeconds: number;
  /** Returns the `world` to work on, or the report of a tick without work. */
  read(
    nowMs: number,
  ): Promise<{ readonly kind: 'work'; readonly world: World } | { readonly kind: 'done'; readonly report: Report }>;
  /** One conditional write. */
  claim(world: World, nowMs: number): Promise<Claim<Claimed>>;
  work(claimed: Claimed, tick: RunningTick): Promise<Report>;
}

/**
 * Runs one tick of a controller:
 *
 *   stale: drop it ── read ── nothing to do, or slot already claimed: done ── claim; the loser exits
 *   work within the budget ── report the faults of single objects together
 *
 * The read comes before the claim: a slot without work costs no write. Rows read before the claim may be stale, so
 * every effect carries its own condition.
 *
 * @throws TickFault when single objects failed; the next tick does their work
 */
export async function runTick<World, Claimed, Report>(
  dependencies: { readonly clock: Clock },
  tick: Tick,
  steps: TickSteps<World, Claimed, Report>,
): Promise<Report | SkippedTick> {
  const { report, faults } = await attemptTick(dependencies, tick, steps);
  if (faults.length > 0 || report === undefined) {
    throw tickFault(steps.controller, faults, { hasRun: report !== undefined });
  }
  return report;
}

export const tickFault = (
  controller: string,
  faults: readonly unknown[],
  options: { readonly hasRun: boolean },
): TickFault => new TickFault(faults, `${controller} could not finish its tick`, options);

export interface TickOutcome<Report> {
  /** Absent when the work as a whole failed. */
  readonly report: Report | SkippedTick | undefined;
  /** Faults of single objects. All other work is done. */
  readonly faults: readonly unknown[];
}

/**
 * The same, for a controller that continues after the faults of single objects. It rejects when the read or claim does.
 */
export async function attemptTick<World, Claimed, Report>(
  { clock }: { readonly clock: Clock },
  tick: Tick,
  steps: TickSteps<World, Claimed, Report>,
): Promise<TickOutcome<Report>> {
  const { slot } = tick;
  const { periodSeconds } = steps;
  const nowMs = clock.nowMs();
  const withoutFault = (report: Report | SkippedTick): TickOutcome<Report> => ({ report, faults: [] });
  if (slotVerdict({ slot, nowMs, periodSeconds }) === 'stale') return withoutFault({ kind: 'stale' });
  const read = await steps.read(nowMs);
  if (read.kind === 'done') return withoutFault(read.report);
  const claim = await steps.claim(read.world, nowMs);
  if (claim === 'lost') return withoutFault({ kind: 'lost' });

  const periodMs = periodSeconds * 1_000;
  const budget = (leastShare = 0): WorkBudget => {
    const untilMs = Math.max(nowMs + periodMs - PERIOD_RESERVE_MS, clock.nowMs() + leastShare * periodMs);
    return workUntil(clock, Math.min(nowMs + (tick.budgetMs ?? Infinity), untilMs));
  };
  const faults: unknown[] = [];
  const report = await steps.work(claim.claimed, { slot, nowMs, budget, faults }).catch((fault: unknown) => {
    faults.push(fault);
    return undefined;
  });
  return { report, faults };
}

/** Claims slots of controllers that store nothing with them (fleet-store.ts). */
interface BareClaims {
  claimBare(controller: string, claimed: ClaimedSlot, nowMs: number): Promise<'claimed' | 'lost'>;
}

/** The claim of a controller that stores nothing with its slot. */
export const bareClaim =
  <World>({ fleet }: { readonly fleet: BareClaims }, controller: string, claimed: ClaimedSlot) =>
  async (world: World, nowMs: number): Promise<Claim<World>> =>
    (await fleet.claimBare(controller, claimed, nowMs)) === 'lost' ? 'lost' : { kind: 'claimed', claimed: world };

/** Emits the delay of a tick when it is due. An alarm treats a missing metric as a controller that stopped. */
export function reportTickAge(
  meter: Meter,
  at: {
    readonly slot: number;
    /** The slot that was claimed before it, where that is known. */
    readonly slotBefore?: number | undefined;
    readonly periodSeconds: number;
    readonly nowMs: number;
  },
): void {
  const ageMs = Math.max(0, at.nowMs - slotStartMs(at.slot, at.periodSeconds));
  if (reportsAge({ ...at, ageMs })) meter.add(TICK_AGE, ageMs / 1_000, 'Seconds');
}

export interface FailedWakeUp {
  readonly name: string;
  readonly reason: string;
}

/** Starts other functions of the cluster. A wake-up may be lost, late or doubled. */
export interface Waker {
  /**
   * Starts each function for the tick that began at `atMs`, without waiting for its end. Never rejects: a controller
   * that is not woken is swept within a minute. Returns what failed.
   */
  wake(names: readonly string[], atMs: number): Promise<readonly FailedWakeUp[]>;
}

/**
 * Wakes these functions. Never rejects: the next tick or sweep does their work.
 *
 * Whether a wake-up acts is decided by the claim of its slot. So it may come late, twice, or at once with a sweep.
 */
export async function wake(
  { waker, log }: { readonly waker?: Waker; readonly log: Log },
  names: readonly string[],
  slotStartMs: number,
): Promise<void> {
  if (waker === undefined) return;
  const failed = await waker.wake(names, slotStartMs);
  if (failed.length > 0) log.warn('functions could not be woken: the next tick or sweep does their work', { failed });
}
