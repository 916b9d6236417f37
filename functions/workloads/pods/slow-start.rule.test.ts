import { expect, it } from 'vitest';
import { slowStartBatches } from './slow-start.rule.ts';

it.each([
  [0, undefined, []],
  [1, undefined, [1]],
  [10, undefined, [1, 2, 4, 3]],
  [15, undefined, [1, 2, 4, 8]],
  [12, 3, [1, 2, 3, 3, 3]],
])('WR-03 %i operations, at most %s at a time, are the batches %j', (count, batchMax, batches) => {
  expect(slowStartBatches(count, batchMax)).toEqual(batches);
});
