import { expect, it } from 'vitest';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { claimWrite, dropClaim, readClaim, readFence } from './owner-claim-store.ts';
import { readShortages, writeShortages } from './shortage-store.ts';

it('an owner is claimed once from each fence, with what is stored beside it', async () => {
  const items = memoryItemStore();
  const claim = async (fence: number, more?: { readonly b: number }) =>
    (await items.write(claimWrite('u', fence, more))).kind;
  expect(await readFence(items, 'u')).toBe(0);
  expect([await claim(1), await claim(0, { b: 7 }), await claim(0)]).toEqual(['refused', 'written', 'refused']);
  expect(await readClaim(items, 'u')).toMatchObject({ fence: 1, row: { b: 7, f: 1 } });
  expect(await readFence(items, 'other')).toBe(0);
  expect([await claim(1, { b: 8 }), await claim(1)]).toEqual(['written', 'refused']);
  expect(await readClaim(items, 'u')).toMatchObject({ fence: 2, row: { b: 8 } });
  await dropClaim(items, 'u');
  expect(await readClaim(items, 'u')).toEqual({ fence: 0, row: {} });
});

it('shortages are none at first, and replaced as a whole', async () => {
  const items = memoryItemStore();
  expect(await readShortages(items)).toEqual({});
  await writeShortages(items, { a: 1 });
  await writeShortages(items, { b: 2 });
  expect(await readShortages(items)).toEqual({ b: 2 });
});
