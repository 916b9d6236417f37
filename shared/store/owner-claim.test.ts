import { expect, it } from 'vitest';
import { memoryItemStore } from './memory/item-store.ts';
import { claimAnyway, claimWrite, dropClaim, readClaim, readFence } from './owner-claim.ts';

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
  await items.write(claimAnyway('u'));
  await items.write(claimAnyway('new'));
  expect([await claim(2), await readFence(items, 'u'), await readFence(items, 'new')]).toEqual(['refused', 3, 1]);
  await dropClaim(items, 'u');
  expect(await readClaim(items, 'u')).toEqual({ fence: 0, row: {} });
});
