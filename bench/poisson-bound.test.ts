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
});
