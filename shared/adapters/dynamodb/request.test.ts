import { expect, it } from 'vitest';
import { pauseBefore } from './request.ts';

it.each([
  [1, 0, 10],
  [1, 1, 20],
  [2, 0, 20],
  [4, 0.5, 120],
])('attempt %i waits half to the whole of a doubling pause: at %d it is %i ms', async (attempt, fraction, expected) => {
  const pauses: number[] = [];
  await pauseBefore(attempt, {
    tables: {},
    random: () => fraction,
    pause: async (milliseconds) => pauses.push(milliseconds),
  });
  expect(pauses).toEqual([expected]);
});
