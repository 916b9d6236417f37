import { describe, expect, it } from 'vitest';
import { minutesToReport } from './refused-minutes.rule.ts';

describe('the minutes of refused requests that a tick reports', () => {
  it.each([5, 7, 30, 60, 90, 300])('are each one once, with a period of %i s', (periodSeconds) => {
    const reported: number[] = [];
    for (let atMs = periodSeconds * 1_000; atMs <= 3_700_000; atMs += periodSeconds * 1_000) {
      reported.push(...minutesToReport(atMs, atMs - periodSeconds * 1_000));
    }
    expect(reported).toEqual(reported.toSorted((one, other) => one - other));
    expect(new Set(reported).size).toBe(reported.length);
    expect(reported.length).toBeGreaterThanOrEqual(55);
  });

  it('are over for at least ten seconds', () => {
    expect(minutesToReport(65_000, 60_000)).toEqual([]);
    expect(minutesToReport(70_000, 65_000)).toEqual([0]);
    expect(minutesToReport(75_000, 70_000)).toEqual([]);
  });

  it('are the last five after a long gap, and none at the first tick of a cluster', () => {
    expect(minutesToReport(3_610_000, 10_000)).toEqual([55, 56, 57, 58, 59].map((minute) => minute * 60_000));
    expect(minutesToReport(3_610_000, undefined)).toEqual([]);
  });
});
