/**
 * Slots: when a controller acts, and why it acts once.
 *
 * Time is divided into slots of one period. A function names the slot by its own clock, and claims it with one
 * conditional write, which also yields the fence, a number that grows with every claim. The loser exits. Claims only
 * move forward. So a message may come late, twice or at once with another: no scheduled time in it decides anything.
 */
import type { Policy } from '../fleet/policy.ts';

/**
 * A wake-up may be this late. Seconds: the oldest event that Lambda delivers (cdk/lib/tick.ts), which is also the
 * precision of EventBridge Scheduler. Source: EventBridge Scheduler User Guide, "Schedule types".
 */
export const SCHEDULER_PRECISION_SECONDS = 60;

/**
 * A slot may be claimed this long before it begins. Milliseconds. The message of a slot is delivered at its start by the
 * clock of the function that sent it. The clock of the function that receives it may be behind: without this allowance
 * it would name the slot before, which is claimed, and the chain would end.
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
 * Time until a slot begins, for a delayed message: whole seconds, rounded up, since a message that comes before its slot
 * is lost. Source: Amazon SQS API Reference, SendMessage (DelaySeconds, 0 to 900).
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

/** The claim as data, in the words of the item store: written, the answer's `fence` is the fencing number; refused, exit. */
export const claimSlot = (slot: number) =>
  ({
    set: { slot },
    add: { fence: 1 },
    when: {
      kind: 'any',
      of: [
        { kind: 'lacks', attribute: 'slot' },
        { kind: 'compare', attribute: 'slot', op: '<', value: slot },
      ],
    },
  }) as const;

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
 * Longest gap between two finished ticks of node-monitor that is no missed tick (D9): half of the grace period, which is
 * the shortest silence for which a node is marked. Milliseconds.
 *
 * The gap is measured in seconds of the grace period, not in periods, because that is what a gap puts at risk. A grace
 * period is at least two heartbeat intervals. Let the last heartbeat before an outage be one interval old. At the first
 * tick after the outage the node has been silent for at most half a grace period and one interval: not over a grace period.
 * A grace period of barely two periods leaves no room for a tick that is late by tenths of a second, so the gap is at
 * least one and a half periods.
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
