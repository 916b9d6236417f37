import { expect, it } from 'vitest';
import { nextIntervalMs } from './group-pace.ts';

const after = (sizes: readonly number[], from = 0): number =>
  sizes.reduce((intervalMs, size) => nextIntervalMs(intervalMs, size), from);

it('does not wait for a client that writes one thing after the other', () => {
  expect(after(Array.from({ length: 100 }, () => 1))).toBe(0);
});

it('waits longer while groups hold several writes, up to a limit', () => {
  expect(after([2, 3])).toBe(1);
  expect(after(Array.from({ length: 100 }, () => 2))).toBe(5);
});

it('stops to wait when the load ends', () => {
  expect(
    after(
      Array.from({ length: 40 }, () => 1),
      5,
    ),
  ).toBe(0);
});
