import { describe, expect, it } from 'vitest';
import { claimSlot, reportsAge, slotOf, slotStartMs, slotVerdict, ticksWereMissing } from './tick.ts';

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

  it('are claimed forward only', () => {
    expect(claimSlot(7)).toMatchObject({ set: { slot: 7 }, add: { fence: 1 } });
    expect(claimSlot(7).when.of[1]).toMatchObject({ attribute: 'slot', op: '<', value: 7 });
  });
});

describe('ticksWereMissing', () => {
  const missingAfter = (gapMs: number) =>
    ticksWereMissing({ lastTickAtMs: 100_000, nowMs: 100_000 + gapMs, periodSeconds: 5 });

  it('allows one missing tick, and the jitter of the next', () => {
    expect(missingAfter(5_000)).toBe(false);
    expect(missingAfter(10_000)).toBe(false);
    expect(missingAfter(10_400)).toBe(false);
  });

  it('finds a gap of three periods', () => {
    expect(missingAfter(14_700)).toBe(true);
    expect(missingAfter(15_000)).toBe(true);
  });

  it('trusts nothing before the first tick', () => {
    expect(ticksWereMissing({ lastTickAtMs: undefined, nowMs: 0, periodSeconds: 5 })).toBe(true);
  });
});

describe('the age of a tick', () => {
  const toldAt = (periodSeconds: number): number[] =>
    Array.from({ length: 120 / periodSeconds }, (_, slot) => slot)
      .filter((slot) => reportsAge({ slot, periodSeconds, ageMs: 60_000 }))
      .map((slot) => slot * periodSeconds);

  it.each([
    [5, [0, 30, 60, 90]],
    [20, [0, 40, 60, 100]],
    [60, [0, 60]],
  ])('is reported twice per minute where there are so many, with a period of %i s', (periodSeconds, seconds) => {
    expect(toldAt(periodSeconds)).toEqual(seconds);
  });

  it('is reported by each tick that is later than the precision of the scheduler', () => {
    expect(reportsAge({ slot: 1, periodSeconds: 5, ageMs: 60_000 })).toBe(false);
    expect(reportsAge({ slot: 1, periodSeconds: 5, ageMs: 60_001 })).toBe(true);
  });
});
