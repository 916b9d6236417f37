/**
 * The claim of an owner, in the `control` table: pk `owner#<uid>` sk `-`, f counts the transactions that changed its
 * set of objects. Whoever creates, adopts or deletes objects for an owner raises f in the same transaction, under the
 * condition that f is what it read before it read the objects. So two workers never act on the same set. A hub that
 * puts a copy in the place of a pod raises f, too (shared/kinds/pods/site-copy.ts).
 */

import { is, lacks } from './attributes.ts';
import type { Item, ItemKey, ItemStore, UpdateWrite } from './item-store.ts';
import { ALONE } from './layout.ts';

const keyOf = (ownerUid: string): ItemKey => ({ table: 'control', pk: `owner#${ownerUid}`, sk: ALONE });

/** Strongly consistent; 0 before the first claim. Read it before the objects. */
export const readFence = async (items: Pick<ItemStore, 'get'>, ownerUid: string): Promise<number> =>
  (await readClaim(items, ownerUid)).fence;

/** The same, with what is stored beside it. */
export async function readClaim(
  items: Pick<ItemStore, 'get'>,
  ownerUid: string,
): Promise<{ readonly fence: number; readonly row: Item }> {
  const row = (await items.get(keyOf(ownerUid), { consistent: true })) ?? {};
  return { fence: typeof row['f'] === 'number' ? row['f'] : 0, row };
}

/**
 * For a commit's `extra`: refuses the commit if another worker claimed the owner since. `more`: stored with the claim.
 */
export const claimWrite = (ownerUid: string, fence: number, more: Item = {}): UpdateWrite => ({
  kind: 'update',
  key: keyOf(ownerUid),
  set: { ...more, f: fence + 1 },
  when: fence === 0 ? lacks('f') : is('f', fence),
});

/** For a transaction that does not depend on what the set was. */
export const claimAnyway = (ownerUid: string): UpdateWrite => ({
  kind: 'update',
  key: keyOf(ownerUid),
  add: { f: 1 },
});

/** When the owner no longer exists. */
export async function dropClaim(items: Pick<ItemStore, 'write'>, ownerUid: string): Promise<void> {
  await items.write({ kind: 'delete', key: keyOf(ownerUid) });
}
