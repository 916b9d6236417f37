import { describe, expect, it } from 'vitest';
import { poissonBound95 } from './poisson-bound.ts';

describe('the 95 % bound on a count of rare events', () => {
  it.each([
    [0, 2.996],
    [1, 4.744],
    [2, 6.296],
    [10, 16.962],
  ])('leaves for %i seen a mean of at most %f', (count, bound) => {
    expect(poissonBound95(count)).toBeCloseTo(bound, 2);
  });

  it('is continuous where the approximation begins', () => {
    // The last exact one: approximated it would be 118.0785.
    expect(poissonBound95(100)).toBeCloseTo(118.079_273, 5);
    expect(poissonBound95(101) - poissonBound95(100)).toBeCloseTo(1.08, 1);
    expect(poissonBound95(1_000_000)).toBeCloseTo(1_001_646, -1);
  });
});
