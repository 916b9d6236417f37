import { describe, expect, it } from 'vitest';
import { defaultPolicy, type Policy } from '../fleet/policy.ts';
import {
  claimSlot,
  currentSlot,
  isTicking,
  reportsAge,
  reportTickAge,
  secondsToSlot,
  slotOf,
  slotStartMs,
  slotVerdict,
  tickGapMaxMs,
  ticksWereMissing,
} from './tick.ts';

describe('slots', () => {
  it('count whole periods since the epoch', () => {
    expect(slotOf(0, 5)).toBe(0);
    expect(slotOf(9_999, 5)).toBe(1);
    expect(slotStartMs(slotOf(1_767_225_603_000, 5), 5)).toBe(1_767_225_600_000);
  });

  it('are due up to a minute and a period late, and stale after that', () => {
    expect(slotVerdict({ slot: 0, nowMs: 65_000, periodSeconds: 5 })).toBe('due');
    expect(slotVerdict({ slot: 0, nowMs: 65_001, periodSeconds: 5 })).toBe('stale');
  });

  it('may be claimed by a clock that is two seconds behind', () => {
    expect(currentSlot(7_999, 5)).toBe(1);
    expect(currentSlot(8_000, 5)).toBe(2);
  });

  it('are waited for in whole seconds, and never too short', () => {
    expect(secondsToSlot(2, 5_000, 5)).toBe(5);
    expect(secondsToSlot(2, 5_001, 5)).toBe(5);
    expect(secondsToSlot(2, 9_001, 5)).toBe(1);
    expect(secondsToSlot(2, 10_001, 5)).toBe(0);
  });

  it('are claimed forward only', () => {
    const claim = claimSlot({ slot: 7, periodSeconds: 5 });
    expect(claim).toMatchObject({ set: { slot: 7, s: 35 }, add: { fence: 1 } });
    expect(claim.when).toMatchObject({
      kind: 'any',
      of: [
        { kind: 'lacks', attribute: 's' },
        { attribute: 's', op: '<', value: 35 },
      ],
    });
  });
});

describe('ticksWereMissing', () => {
  const missingAfter = (gapMs: number, policy: Partial<Policy> = {}) =>
    ticksWereMissing({
      lastTickAtMs: 100_000,
      nowMs: 100_000 + gapMs,
      gapMaxMs: tickGapMaxMs({ ...defaultPolicy, ...policy }),
    });

  it('allows late and lost ticks up to half of the grace period', () => {
    expect(missingAfter(5_000)).toBe(false);
    expect(missingAfter(15_000)).toBe(false);
    expect(missingAfter(20_000)).toBe(false);
    expect(missingAfter(20_001)).toBe(true);
  });

  it('follows the grace period, not the period', () => {
    expect(missingAfter(30_000, { nodeMonitorGracePeriodSeconds: 60 })).toBe(false);
    expect(missingAfter(20_001, { nodeMonitorPeriodSeconds: 10 })).toBe(true);
  });

  it('allows for jitter where the grace period is two periods', () => {
    const tight = { nodeMonitorPeriodSeconds: 5, nodeMonitorGracePeriodSeconds: 10 } as const;
    expect(missingAfter(5_400, tight)).toBe(false);
    expect(missingAfter(7_501, tight)).toBe(true);
  });

  it('is true before the first tick', () => {
    expect(ticksWereMissing({ lastTickAtMs: undefined, nowMs: 0, gapMaxMs: 20_000 })).toBe(true);
  });
});

describe('isTicking', () => {
  const ticking = (ageMs: number) => isTicking({ claimedAtMs: 100_000, nowMs: 100_000 + ageMs, periodSeconds: 5 });

  it('is true for two periods after a claim', () => {
    expect(ticking(10_000)).toBe(true);
    expect(ticking(10_001)).toBe(false);
  });

  it('is false before the first claim, and after the clock stepped back', () => {
    expect(isTicking({ claimedAtMs: undefined, nowMs: 0, periodSeconds: 5 })).toBe(false);
    expect(ticking(-30_000)).toBe(false);
  });
});

describe('the age of a tick', () => {
  const reportedAt = (periodSeconds: number): number[] =>
    Array.from({ length: 120 / periodSeconds }, (_, slot) => slot)
      .filter((slot) => reportsAge({ slot, periodSeconds, ageMs: 60_000 }))
      .map((slot) => slot * periodSeconds);

  it.each([
    [5, [0, 30, 60, 90]],
    [20, [0, 40, 60, 100]],
    [60, [0, 60]],
  ])('is reported twice a minute where there are so many, with a period of %i s', (periodSeconds, seconds) => {
    expect(reportedAt(periodSeconds)).toEqual(seconds);
  });

  it('is reported by the next tick when the first of a half minute is lost', () => {
    expect(reportsAge({ slot: 7, slotBefore: 5, periodSeconds: 5, ageMs: 0 })).toBe(true);
    expect(reportsAge({ slot: 8, slotBefore: 7, periodSeconds: 5, ageMs: 0 })).toBe(false);
  });

  it('is reported by each tick that comes later than a scheduler may be', () => {
    expect(reportsAge({ slot: 1, periodSeconds: 5, ageMs: 60_000 })).toBe(false);
    expect(reportsAge({ slot: 1, periodSeconds: 5, ageMs: 60_001 })).toBe(true);
  });
});

function agesOf(slot: number, lateMs: number): unknown[] {
  const added: unknown[] = [];
  const meter = { add: (...metric: unknown[]) => added.push(metric) } as never;
  reportTickAge(meter, { slot, periodSeconds: 5, nowMs: slot * 5_000 + lateMs });
  return added.map((metric) => (metric as unknown[])[1]);
}

it('the first tick of each half minute reports its age in seconds, the others only when they are late', () => {
  expect(agesOf(12, 1_500)).toEqual([1.5]);
  expect(agesOf(18, -200)).toEqual([0]);
  expect(agesOf(13, 1_500)).toEqual([]);
  expect(agesOf(13, 120_000)).toEqual([120]);
});
