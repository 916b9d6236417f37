import { describe, expect, it } from 'vitest';
import { evaluatesIntervals, minutesToReport, reportsCost } from './report-times.rule.ts';

describe('the cost is reported', () => {
  it('by each tick that begins one of the first five minutes of a quarter of a day, so within one hour', () => {
    const startMs = Date.UTC(2026, 0, 1);
    const secondsTold: number[] = [];
    for (let seconds = 0; seconds < 43_200; seconds += 5)
      if (reportsCost(startMs + seconds * 1_000)) secondsTold.push(seconds);
    expect(secondsTold).toEqual([0, 21_600].flatMap((first) => [0, 60, 120, 180, 240].map((more) => first + more)));
  });
});

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

it('evaluates in the first tick of an hour alone', () => {
  const hourMs = 3_600_000;
  const inHour = [0, 4_999, 5_000, hourMs - 1].map((ms) => evaluatesIntervals(7 * hourMs + ms, 5));
  expect(inHour).toEqual([true, true, false, false]);
});
