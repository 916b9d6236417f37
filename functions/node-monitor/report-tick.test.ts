import { describe, expect, it } from 'vitest';
import { reportsCost } from './report-tick.ts';

describe('the cost is reported', () => {
  it('by each tick that begins one of the first five minutes of a quarter of a day, so within one hour', () => {
    const startMs = Date.UTC(2026, 0, 1);
    const secondsTold: number[] = [];
    for (let seconds = 0; seconds < 43_200; seconds += 5)
      if (reportsCost(startMs + seconds * 1_000)) secondsTold.push(seconds);
    expect(secondsTold).toEqual([0, 21_600].flatMap((first) => [0, 60, 120, 180, 240].map((more) => first + more)));
  });
});
