/**
 * Slots: when a controller acts, and how nobody acts twice.
 *
 * Each tick message names the time it was scheduled for; its slot is that time in whole periods. The controller claims
 * the slot with one conditional write, which also yields the fence, a number that grows with every claim; whoever loses
 * exits. Claims only move forward, so a message that comes after a later slot was claimed is lost, in any order of arrival.
 * The message may come up to a minute late by itself (precision of the scheduler), and always equally late within one
 * minute: lateness alone, within that, is no reason to drop it.
 */

import type { Policy } from './policy.ts';

/** The scheduler's precision. Seconds; a message later than this plus a period was held up by an outage. */
export const SCHEDULER_PRECISION_SECONDS = 60;

/** Number of a slot. `periodSeconds` divides a minute. */
export const slotOf = (scheduledMs: number, periodSeconds: number): number =>
  Math.floor(scheduledMs / (periodSeconds * 1_000));

/** When a slot begins. Epoch milliseconds. */
export const slotStartMs = (slot: number, periodSeconds: number): number => slot * periodSeconds * 1_000;

/**
 * due: to be claimed. stale: held up by an outage of ours or replayed; dropped, because nothing depends on how many ticks
 * ran, and a burst of old ones would only look like a controller in good health.
 */
export const slotVerdict = (at: {
  readonly slot: number;
  readonly nowMs: number;
  readonly periodSeconds: number;
}): 'due' | 'stale' =>
  at.nowMs - slotStartMs(at.slot, at.periodSeconds) > (SCHEDULER_PRECISION_SECONDS + at.periodSeconds) * 1_000
    ? 'stale'
    : 'due';

/** A figure a minute is what alarms look at; the second of each minute stands in for a first that is lost. */
const AGE_TOLD_EACH_MS = 30_000;

/** Whether a tick tells its age: the first of each half minute, and each that is later than a scheduler may be. Lines are billed. */
export const tellsAge = (at: {
  readonly slot: number;
  readonly periodSeconds: number;
  readonly ageMs: number;
}): boolean => {
  const half = (slot: number): number => Math.floor(slotStartMs(slot, at.periodSeconds) / AGE_TOLD_EACH_MS);
  return half(at.slot) !== half(at.slot - 1) || at.ageMs > SCHEDULER_PRECISION_SECONDS * 1_000;
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
 * period is at least two heartbeat intervals. A node whose last heartbeat before an outage was one interval old has been
 * silent for at most half a grace period and one interval when the first tick after it runs: not over a grace period.
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
