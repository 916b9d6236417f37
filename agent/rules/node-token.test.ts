import { expect, it } from 'vitest';
import { clockOffsetMs, explainsRefusal } from './node-token.ts';

it('the clock of the server is compared with ours in both directions', () => {
  expect([4_999, -4_999, 5_000, -5_000].map((aheadMs) => clockOffsetMs(60_000 + aheadMs, 60_000))).toEqual([
    ...[0, 0, 5_000, -5_000],
  ]);
  expect([14_999, 15_000].map((ms) => [explainsRefusal(0, ms), explainsRefusal(ms, 0)])).toEqual([
    [false, false],
    [true, true],
  ]);
});
