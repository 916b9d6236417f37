import { expect, it } from 'vitest';
import { readAll } from './bounded-reads.ts';

it.each([
  [0, 0],
  [5, 5],
  [32, 32],
  [100, 32],
])('of %i parts, %i are read at the same time, and each once', async (total, atOnce) => {
  const parts = Array.from({ length: total }, (_, index) => index);
  const read: number[] = [];
  let running = 0;
  let most = 0;
  await readAll(parts, async (part) => {
    running += 1;
    most = Math.max(most, running);
    await Promise.resolve();
    read.push(part);
    running -= 1;
  });
  expect(most).toBe(atOnce);
  expect(read.toSorted((one, other) => one - other)).toEqual(parts);
});

it('the first fault is that of the read', async () => {
  const read = readAll([1, 2, 3], (part) => (part === 2 ? Promise.reject(new Error('no')) : Promise.resolve()));
  await expect(read).rejects.toThrow('no');
});
