import { expect, it } from 'vitest';
import { memoryObjects } from '../../test/support/memory-objects.ts';
import type { ItemStore } from './item-store.ts';
import { memoryItemStore } from './memory/item-store.ts';
import { claimAnyway, claimWrite, dropClaim, ownedRefs, ownerIndexWrites, readClaim, readFence } from './owners.ts';

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

it('an object is found by each owner that it refers to, of one resource or of all, as long as it does', async () => {
  const { items, commit } = memoryObjects();
  const ownedBy = (...uids: string[]) => ({
    metadata: { name: 'a', ownerReferences: uids.map((uid) => ({ uid, apiVersion: 'v1', kind: 'K', name: 'n' })) },
  });
  const pod = { resource: 'pods', namespace: 'default', name: 'a' };
  const widget = { resource: 'widgets', namespace: '', name: 'a' };
  const created = await commit({ kind: 'create', ref: pod, object: ownedBy('u', 'v', '') });
  await commit({ kind: 'create', ref: widget, object: ownedBy('u', 'u') });
  expect(await ownedRefs(items, 'u')).toEqual([pod, widget]);
  expect(await ownedRefs(items, 'u', 'pods')).toEqual([pod]);
  expect(await ownedRefs(items, 'v')).toEqual([pod]);
  expect(await ownedRefs(items, '')).toEqual([]);
  const moved = await commit({ kind: 'update', ref: pod, object: ownedBy('v', 'w'), previous: created });
  expect(await ownedRefs(items, 'u')).toEqual([widget]);
  expect(await ownedRefs(items, 'v')).toEqual([pod]);
  expect(await ownedRefs(items, 'w')).toEqual([pod]);
  await commit({ kind: 'delete', ref: pod, previous: moved });
  expect([await ownedRefs(items, 'v'), await ownedRefs(items, 'w')]).toEqual([[], []]);
});

it('a change costs no row of an owner that stays', () => {
  const owned = (...uids: string[]) => ({
    metadata: { name: 'a', ownerReferences: uids.map((uid) => ({ uid, apiVersion: 'v1', kind: 'K', name: 'n' })) },
  });
  const writes = ownerIndexWrites({ resource: 'pods', namespace: 'x', name: 'a' }, owned('u', 'v'), owned('v', 'w'));
  const key = (uid: string) => ({ table: 'objects', pk: `w#${uid}`, sk: 'pods:x/a' });
  expect(writes).toEqual([
    { kind: 'put', key: key('w'), item: {} },
    { kind: 'delete', key: key('u') },
  ]);
});

it.each([
  [8, 8],
  [9, undefined],
])('%i pages of one owner are read as %s objects', async (pagesTotal, objects) => {
  let pages = 0;
  const asked: unknown[] = [];
  const query: ItemStore['query'] = async ({ after, beginsWith, consistent }) => {
    pages += 1;
    asked.push([after, beginsWith, consistent]);
    return { items: [{ sk: `pods:default/p${pages}` }], ...(pages < pagesTotal && { next: `k${pages}` }) };
  };
  const found = ownedRefs({ query }, 'u', 'pods');
  if (objects === undefined) await expect(found).rejects.toMatchObject({ code: 'too-large', retryable: false });
  else expect((await found).map(({ name }) => name)).toEqual(['p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8']);
  expect(asked.slice(0, 2)).toEqual([
    [undefined, 'pods:', true],
    ['k1', 'pods:', true],
  ]);
  expect(pages).toBe(8);
});
