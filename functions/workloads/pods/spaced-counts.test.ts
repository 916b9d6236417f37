import { expect, it } from 'vitest';
import { spacedCounts } from './spaced-counts.ts';

function counting() {
  let nowMs = 1_000;
  const counts = spacedCounts({ nowMs: () => nowMs });
  return {
    counts,
    advance(ms: number) {
      nowMs += ms;
    },
    count: (name: string, tookMs: number) =>
      counts.run(name, async () => {
        nowMs += tookMs;
      }),
  };
}

it.each([
  [249, undefined],
  [250, 2_250],
  [1_000, 9_000],
  [60_000, 30_000],
])('pauses after a count of %d ms for %s ms', async (tookMs, pauseMs) => {
  const { counts, count, advance } = counting();
  expect(counts.pausedUntilMs('a')).toBeUndefined();
  await count('a', tookMs);
  expect(counts.pausedUntilMs('b')).toBeUndefined();
  expect(counts.pausedUntilMs('a')).toBe(pauseMs === undefined ? undefined : 1_000 + tookMs + pauseMs);
  advance((pauseMs ?? 0) - 1);
  expect(counts.pausedUntilMs('a') === undefined).toBe(pauseMs === undefined);
  advance(1);
  expect(counts.pausedUntilMs('a')).toBeUndefined();
});

it('pauses after a count that failed', async () => {
  const { counts, advance } = counting();
  const failing = counts.run('a', () => {
    advance(1_000);
    return Promise.reject(new Error('no answer'));
  });
  await expect(failing).rejects.toThrow('no answer');
  expect(counts.pausedUntilMs('a')).toBe(11_000);
});

it('pauses no longer after a count that became short', async () => {
  const { counts, count } = counting();
  await count('a', 1_000);
  await count('a', 10);
  expect(counts.pausedUntilMs('a')).toBeUndefined();
});

it('remembers a bounded number of counts', async () => {
  const { counts, count } = counting();
  for (let index = 0; index <= 1_000; index += 1) await count(`n${index}`, 250);
  await count('last', 60_000);
  expect(counts.pausedUntilMs('last')).toBeDefined();
  expect(counts.pausedUntilMs('n0')).toBeUndefined();
});
