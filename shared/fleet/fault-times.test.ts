import { expect, it } from 'vitest';
import { earlierFaults, rememberedFaults } from './fault-times.ts';

const DAY_AND_HOUR_MS = 25 * 3_600_000;

it('faults are remembered for a day and an hour', () => {
  expect(rememberedFaults([1, 0], DAY_AND_HOUR_MS)).toEqual([1, 0]);
  expect(rememberedFaults([1, 0], DAY_AND_HOUR_MS + 1)).toEqual([1]);
  expect(rememberedFaults([1, 0], DAY_AND_HOUR_MS + 2)).toBeUndefined();
  expect(rememberedFaults([], 0)).toBeUndefined();
});

it('the seven newest faults are remembered, the last one before the earlier ones', () => {
  expect(earlierFaults(10, [9, 8, 7, 6, 5, 4, 3], 11)).toEqual([10, 9, 8, 7, 6, 5, 4]);
  expect(earlierFaults(10, undefined, 11)).toEqual([10]);
  expect(earlierFaults(undefined, [9], 11)).toEqual([9]);
  expect(earlierFaults(undefined, undefined, 11)).toBeUndefined();
  expect(earlierFaults(0, [9], DAY_AND_HOUR_MS + 9)).toEqual([9]);
});
