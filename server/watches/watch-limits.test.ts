import { expect, it } from 'vitest';
import { watchLimits } from './watch-limits.ts';

const requestOf = (user: string) => ({
  user,
  level: 'person' as const,
  slotsMax: 40,
  holder: 'w',
  nowMs: 0,
  untilMs: 1,
  fraction: () => 0,
});

it('one user holds at most a quarter of the watches, and all users together all of them', async () => {
  const limits = watchLimits(8);
  const kinds = async (user: string, count: number) => {
    const outcomes = await Promise.all(Array.from({ length: count }, () => limits.acquire(requestOf(user))));
    return outcomes.map(({ kind }) => kind);
  };
  expect(await kinds('a', 3)).toEqual(['acquired', 'acquired', 'userAtLimit']);
  for (const user of ['b', 'c', 'd']) await kinds(user, 2);
  expect(await kinds('e', 1)).toEqual(['levelAtLimit']);
  expect(limits.held()).toBe(8);
});

it('a watch that ends frees its place, once', async () => {
  const limits = watchLimits(4);
  const first = await limits.acquire(requestOf('a'));
  if (first.kind !== 'acquired') throw new Error(first.kind);
  await first.slot.release();
  await first.slot.release();
  expect(limits.held()).toBe(0);
  expect((await limits.acquire(requestOf('a'))).kind).toBe('acquired');
});
