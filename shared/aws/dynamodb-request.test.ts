import { expect, it } from 'vitest';
import { pauseBefore } from './dynamodb-request.ts';

it.each([
  [1, 0, 10],
  [1, 1, 20],
  [2, 0, 20],
  [4, 0.5, 120],
])('after attempt %i, with random number %d, the pause is %i ms', async (attempt, fraction, expected) => {
  const pauses: number[] = [];
  await pauseBefore(attempt, {
    tables: {},
    random: () => fraction,
    pause: async (milliseconds) => pauses.push(milliseconds),
  });
  expect(pauses).toEqual([expected]);
});
