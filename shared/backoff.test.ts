import { expect, it } from 'vitest';
import { backoffMs } from './backoff.ts';

it('doubles up to its limit, also after more failures than a number can double', () => {
  const waits = { firstMs: 100, limitMs: 750 };
  expect([0, 1, 2, 3, 2_000].map((number) => backoffMs(waits, number))).toEqual([100, 200, 400, 750, 750]);
});

it('is random between the shares of its jitter, after the limit', () => {
  const waits = { firstMs: 100, limitMs: 300, jitter: [0.5, 1.5] } as const;
  expect([0, 0.5, 1].map((fraction) => backoffMs(waits, 1, fraction))).toEqual([100, 200, 300]);
  expect([0, 0.5, 1].map((fraction) => backoffMs(waits, 9, fraction))).toEqual([150, 300, 450]);
});
