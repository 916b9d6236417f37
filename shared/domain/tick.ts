/**
 * Slots: when a controller acts, and why no slot runs twice.
 *
 * Each tick message names the time it was scheduled for; its slot is that time in whole periods. The controller claims
 * the slot with one conditional write, which also returns the fence, a number that grows with every claim. A process
 * that loses the claim exits. Slots are only claimed in ascending order: a message for an earlier slot than the last
 * claimed one is dropped. The scheduler may deliver a message up to a minute late (its precision), and with the same
 * delay within one minute, so a message with such a delay is still processed.
 */

/** The scheduler's precision. Seconds. A message later than this plus a period was delayed by an outage. */
export const SCHEDULER_PRECISION_SECONDS = 60;

/** Number of a slot. `periodSeconds` divides a minute. */
export const slotOf = (scheduledMs: number, periodSeconds: number): number =>
  Math.floor(scheduledMs / (periodSeconds * 1_000));

/** When a slot begins. Epoch milliseconds. */
export const slotStartMs = (slot: number, periodSeconds: number): number => slot * periodSeconds * 1_000;

/**
 * due: to be claimed. stale: delayed by an outage of ours, or replayed. A stale tick is dropped: no result depends on
 * the number of ticks, and a burst of old ones would make an unhealthy controller look healthy.
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
 * Whether a tick reports its age: the first of each half minute, and each that is later than the scheduler's precision.
 * Not every tick, because log lines are billed.
 */
export const reportsAge = (at: {
  readonly slot: number;
  readonly periodSeconds: number;
  readonly ageMs: number;
}): boolean => {
  const half = (slot: number): number => Math.floor(slotStartMs(slot, at.periodSeconds) / AGE_REPORT_INTERVAL_MS);
  return half(at.slot) !== half(at.slot - 1) || at.ageMs > SCHEDULER_PRECISION_SECONDS * 1_000;
};

/**
 * The claim as data, in the words of the item store: written, the answer's `fence` is the fencing number; refused,
 * exit.
 */
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
 * Whole periods between two ticks, by our clock, rounded: a tick comes some tenths of a second early or late and that
 * is not a missing one. By the clock and not by slots, because after an outage old slots may arrive one after the
 * other.
 */
export const periodsBetween = (earlierMs: number, laterMs: number, periodSeconds: number): number =>
  Math.round((laterMs - earlierMs) / (periodSeconds * 1_000));

/** Whether ticks were missing: more than two periods since the last one that finished, or none known at all (D9). */
export const ticksWereMissing = (at: {
  readonly lastTickAtMs: number | undefined;
  readonly nowMs: number;
  readonly periodSeconds: number;
}): boolean => at.lastTickAtMs === undefined || periodsBetween(at.lastTickAtMs, at.nowMs, at.periodSeconds) > 2;
