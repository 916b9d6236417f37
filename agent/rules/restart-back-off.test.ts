import { describe, expect, it } from 'vitest';
import { type BackOff, nextBackOff } from './restart-back-off.ts';

describe('when a terminated container starts again', () => {
  it('restarts at once, then after 10 s, doubling to 5 minutes', () => {
    const waits: number[] = [];
    let last: BackOff;
    for (let end = 0; end < 9; end += 1) {
      last = nextBackOff(last, 1_000);
      waits.push(last);
    }
    expect(waits).toEqual([0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
  });

  it('begins anew after 10 minutes of running, and not a millisecond sooner', () => {
    expect(nextBackOff(300_000, 600_000)).toBe(0);
    expect(nextBackOff(300_000, 599_999)).toBe(300_000);
  });
});
