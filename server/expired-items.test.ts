import { expect, it } from 'vitest';
import { untilSweepMs } from './expired-items.ts';
import { SWEPT_MAX } from './store/sqlite-store.ts';

it('sweeps on without a long pause while a sweep leaves expired items', () => {
  expect([0, 1, SWEPT_MAX - 1, SWEPT_MAX, 3 * SWEPT_MAX].map(untilSweepMs)).toEqual([30_000, 1_000, 1_000, 100, 100]);
  // More than the commits that two cores reach.
  expect((SWEPT_MAX / untilSweepMs(SWEPT_MAX)) * 1_000).toBeGreaterThanOrEqual(2_000);
});
