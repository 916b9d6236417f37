import { expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { controlledFleet } from '../../../test/support/controlled-fleet.ts';
import { spacedCounts } from './spaced-counts.ts';

const START_MS = 1_000;

function counting() {
  let nowMs = START_MS;
  const counts = spacedCounts({ nowMs: () => nowMs });
  const { objects } = controlledFleet();
  /** A store with so many pods in one page. */
  const having = (pods: number) => ({
    ...objects,
    list: async () => ({ objects: Array.from({ length: pods }, (): KubeObject => ({ metadata: {} })) }),
  });
  return {
    counts,
    advance(ms: number) {
      nowMs += ms;
    },
    /** Reads the pods so many times. */
    count: (name: string, pods: number, times = 1) =>
      counts.run(name, having(pods), async ({ list }) => {
        for (let time = 0; time < times; time += 1) await list({ resource: 'pods', limit: 500 });
      }),
    fail: (name: string, pods: number) =>
      counts.run(name, having(pods), async ({ list }) => {
        await list({ resource: 'pods', limit: 500 });
        throw new Error('no answer');
      }),
  };
}

it.each([
  [5_000, 1, undefined],
  [5_001, 1, 5_001],
  [2_500, 4, 10_000],
  [100_000, 1, 30_000],
])('pauses after a count of %d objects, %d times, for %s ms', async (pods, times, pauseMs) => {
  const { counts, count, advance } = counting();
  expect(counts.pausedUntilMs('a')).toBeUndefined();
  await count('a', pods, times);
  expect(counts.pausedUntilMs('b')).toBeUndefined();
  expect(counts.pausedUntilMs('a')).toBe(pauseMs === undefined ? undefined : START_MS + pauseMs);
  advance((pauseMs ?? 0) - 1);
  expect(counts.pausedUntilMs('a') === undefined).toBe(pauseMs === undefined);
  advance(1);
  expect(counts.pausedUntilMs('a')).toBeUndefined();
});

it('pauses after a count that failed', async () => {
  const { counts, fail } = counting();
  await expect(fail('a', 9_000)).rejects.toThrow('no answer');
  expect(counts.pausedUntilMs('a')).toBe(START_MS + 9_000);
});

it('pauses no longer after a count that became short', async () => {
  const { counts, count } = counting();
  await count('a', 9_000);
  await count('a', 10);
  expect(counts.pausedUntilMs('a')).toBeUndefined();
});

it('remembers a bounded number of counts', async () => {
  const { counts, count } = counting();
  for (let index = 0; index <= 1_000; index += 1) await count(`n${index}`, 5_001);
  expect(counts.pausedUntilMs('n1000')).toBeDefined();
  expect(counts.pausedUntilMs('n0')).toBeUndefined();
});
