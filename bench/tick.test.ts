import { describe, expect, it } from 'vitest';
import { UsageError, wholeNumbers } from './benchmark.ts';
import { growthExponent } from './tick.ts';

describe('how a tick grows', () => {
  it('is 1 for what is proportional, whatever the factor', () => {
    expect(growthExponent([1, 10, 50, 100].map((nodes) => ({ nodes, value: 0.3 * nodes })))).toBeCloseTo(1, 9);
  });
  it('is 2 for what grows with the square', () => {
    expect(growthExponent([1, 10, 100].map((nodes) => ({ nodes, value: nodes ** 2 })))).toBeCloseTo(2, 9);
  });
});

describe('sizes as options', () => {
  const bounds = { least: 10, most: 1_000, otherwise: [100] };
  it('are read in order, or are the default', () => {
    expect(wholeNumbers('nodes', '20,1000', bounds)).toEqual([20, 1_000]);
    expect(wholeNumbers('nodes', undefined, bounds)).toEqual([100]);
  });
  it.each(['', '9', '1001', '1e2', '20,', 'many'])('are refused when one is out of range: %j', (text) => {
    expect(() => wholeNumbers('nodes', text, bounds)).toThrow(UsageError);
  });
});
