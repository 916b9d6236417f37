/**
 * The claim of an owner, in the `control` table: pk `owner#<uid>` sk `-`, f counts the transactions that changed its
 * set of objects. Whoever creates, adopts or deletes objects for an owner raises f in the same transaction, under the
 * condition that f is what it read before it read the objects. So two workers never act on the same set. A hub that
 * puts a copy in the place of a pod raises f, too (shared/kinds/pods/site-copy.ts).
 *
 * Which objects an owner has: one item per ownerReference, in the partition of the owner's uid. It is written in the
 * commit that writes the reference, so it is never behind the object. A change of status costs nothing here.
 */
import { defined } from '../defined.ts';
import type { KubeObject, ObjectRef } from '../kinds/types.ts';
import {
  type Item,
  type ItemKey,
  type ItemStore,
  StoreFault,
  type TransactWrite,
  type UpdateWrite,
} from './item-store.ts';
import { ALONE, is, lacks, objectSortKey, ownedPartition } from './layout.ts';
import { refOf } from './object-record.ts';

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

/** Pages of one owner, at 1 MB: about 10,000 objects each. */
const PAGES_MAX = 8;
const SEPARATOR = ':';

/** uids of the owners that the index has, without repetition. */
export const indexedOwners = (object: KubeObject | undefined): readonly string[] => [
  ...new Set((object?.metadata.ownerReferences ?? []).map(({ uid }) => uid).filter((uid) => uid !== '')),
];

/** For the commit that changes `before` to `after`. */
export function ownerIndexWrites(
  ref: ObjectRef,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
): readonly TransactWrite[] {
  const [former, next] = [indexedOwners(before), indexedOwners(after)];
  const key = (uid: string) => ({
    table: 'objects' as const,
    pk: ownedPartition(uid),
    sk: `${ref.resource}${SEPARATOR}${objectSortKey(ref.namespace, ref.name)}`,
  });
  return [
    ...next
      .filter((uid) => !former.includes(uid))
      .map((uid): TransactWrite => ({ kind: 'put', key: key(uid), item: {} })),
    ...former.filter((uid) => !next.includes(uid)).map((uid): TransactWrite => ({ kind: 'delete', key: key(uid) })),
  ];
}

/**
 * The objects of an owner, of one resource or of all. Strongly consistent. An object may have been deleted, or have
 * lost its owner, since: read it.
 *
 * @throws StoreFault when there are more than one read may return
 */
export async function ownedRefs(
  items: Pick<ItemStore, 'query'>,
  ownerUid: string,
  resource?: string,
): Promise<readonly ObjectRef[]> {
  const refs: ObjectRef[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await items.query({
      table: 'objects',
      pk: ownedPartition(ownerUid),
      consistent: true,
      ...defined({ after, beginsWith: resource === undefined ? undefined : resource + SEPARATOR }),
    });
    refs.push(...page.items.map(({ sk }) => refOfSortKey(String(sk))));
    if (page.next === undefined) return refs;
    after = page.next;
  }
  throw new StoreFault('too-large', 'an owner has more objects than one read may return', { retryable: false });
}

function refOfSortKey(sk: string): ObjectRef {
  const at = sk.indexOf(SEPARATOR);
  return refOf(sk.slice(0, at), sk.slice(at + 1));
}
