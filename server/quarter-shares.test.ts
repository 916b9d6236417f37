import { expect, it } from 'vitest';
import { addressShares } from './address-shares.ts';

it('one address has a quarter, and all addresses together have the whole', () => {
  const shares = addressShares(8);
  expect([1, 1, 1].map((amount) => shares.take('a', amount))).toEqual([true, true, false]);
  for (const address of ['b', 'c', 'd']) expect(shares.take(address, 2)).toBe(true);
  expect(shares.take('e', 1)).toBe(false);
  shares.give('a', 2);
  expect([shares.take('e', 1), shares.take('a', 2), shares.take('a', 1)]).toEqual([true, false, true]);
});
