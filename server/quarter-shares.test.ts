import { expect, it } from 'vitest';
import { quarterShares } from './quarter-shares.ts';

it('one owner has a quarter, and all owners together have the whole', () => {
  const shares = quarterShares(8);
  expect([1, 1, 1].map((amount) => shares.use('a', amount))).toEqual(['used', 'used', 'ownerAtLimit']);
  for (const owner of ['b', 'c', 'd']) expect(shares.use(owner, 2)).toBe('used');
  expect(shares.use('e', 1)).toBe('allAtLimit');
  shares.free('a', 2);
  expect([shares.use('e', 1), shares.use('a', 2)]).toEqual(['used', 'allAtLimit']);
  expect([shares.used(), shares.usedBy('e'), shares.usedBy('a')]).toEqual([7, 1, 0]);
});
