import { expect, it } from 'vitest';
import { watchByReading } from './watch-by-reading.ts';

it('reads once per period, however often a change of the log wakes it', async () => {
  let nowMs = 0;
  const readAtMs: number[] = [];
  const source = {
    clock: { nowMs: () => nowMs },
    pause: async () => {
      nowMs += 300;
    },
    storage: { get: async () => void readAtMs.push(nowMs) },
  };
  const request = { namespace: 'kube-node-lease', resourceVersion: '5', fields: { exact: () => 'n1' } };
  for await (const events of watchByReading(source as never, request as never, 3_600)) expect(events).toHaveLength(1);
  expect(readAtMs).toEqual([0, 1_200, 2_400, 3_600]);
});
