/**
 * Leases of nodes in the `health` table (health.ts, lease-record.ts). A beat is one conditional update of a row;
 * the digest of the Node, in the same row, sets other attributes (health-store.ts).
 */
import { defined } from '../../defined.ts';
import { DIGEST, hasDigest, hasLease, holdsLease, LEASE, RECEIVED_AT_MS } from '../../fleet/nodes/health.ts';
import { scanSmallTable } from '../../fleet/nodes/health-store.ts';
import {
  compareKeys,
  type Item,
  type ItemStore,
  type ItemUpdater,
  StoreFault,
  type WriteOutcome,
} from '../../store/item-store.ts';
import {
  all,
  changeOf,
  healthKey,
  healthPartitions,
  holds,
  lacks,
  namesOf,
  RESOURCE_VERSIONS_PER_MS,
} from '../../store/layout.ts';
import { mergePages } from '../../store/merge-pages.ts';
import type { LeaseChange } from './lease-record.ts';

/**
 * One attempt for each of six probes that renew one Lease at once, three through each way of a heartbeat; one more for
 * an owner that is not the row's Node, and one for a stored version ahead of our clock.
 */
const RENEW_ATTEMPTS_MAX = 8;

export interface LeaseWrite {
  readonly change: LeaseChange;
  /** Server receipt time. */
  readonly nowMs: number;
  /** A number in [0, 1) that distinguishes two writers in one millisecond. */
  readonly tie: number;
}

export interface LeaseRenewal extends LeaseWrite {
  /** The version that the writer read; absent for a patch without one, which never conflicts. */
  readonly expectedResourceVersion?: number;
  /** The uid the writer read, when it sent one. */
  readonly expectedUid?: string;
}

export type LeaseWriteOutcome =
  | { readonly kind: 'written' /** the whole row, digest included */; readonly row: Item }
  /** Another version or uid is stored; for a create: a lease exists. */
  | { readonly kind: 'conflict'; readonly row: Item }
  /** There is no lease. */
  | { readonly kind: 'absent' };

/**
 * A beat: one conditional update, without a read. Returns the whole row, because the response also reports other
 * attributes, such as changed pods.
 *
 * The client sends an update again when its response was lost. The second one is then refused, because the first one
 * succeeded. The row in the refusal has exactly our version and values, and counts as written.
 */
export async function renewLease(items: ItemUpdater, renewal: LeaseRenewal): Promise<LeaseWriteOutcome> {
  const { change, nowMs, tie, expectedResourceVersion, expectedUid } = renewal;
  let version = nowMs * RESOURCE_VERSIONS_PER_MS + Math.floor(tie * RESOURCE_VERSIONS_PER_MS);
  if (expectedResourceVersion !== undefined) version = Math.max(version, expectedResourceVersion + 1);
  let { set, remove, ownerUid }: { set: Item; remove: readonly string[]; ownerUid?: string } = change;
  let receivedAtMs = nowMs;
  for (let attempt = 1; attempt <= RENEW_ATTEMPTS_MAX; attempt += 1) {
    const values: Item = { ...set, [LEASE.version.name]: version, [RECEIVED_AT_MS.name]: receivedAtMs };
    const outcome = await items.write(
      {
        kind: 'update',
        key: healthKey(change.nodeName),
        set: values,
        remove,
        when: all(
          expectedResourceVersion === undefined
            ? { kind: 'compare', attribute: LEASE.version.name, op: '<', value: version }
            : holds(LEASE.version, expectedResourceVersion),
          ...(expectedUid === undefined ? [] : [holds(LEASE.uid, expectedUid)]),
          ...(ownerUid === undefined ? [] : [holds(DIGEST.uid, ownerUid)]),
        ),
      },
      { returnItem: true },
    );
    if (outcome.kind === 'written') return { kind: 'written', row: outcome.item! };
    const row = outcome.current;
    if (row === undefined || !hasLease(row)) return { kind: 'absent' };
    const isEcho =
      Object.entries(values).every(([name, value]) => row[name] === value) &&
      remove.every((name) => row[name] === undefined);
    if (isEcho) return { kind: 'written', row };
    if (expectedUid !== undefined && LEASE.uid.of(row) !== expectedUid) return { kind: 'conflict', row };
    const stored = LEASE.version.of(row);
    if (expectedResourceVersion !== undefined && stored !== expectedResourceVersion) return { kind: 'conflict', row };
    if (ownerUid !== undefined && row[DIGEST.uid.name] !== ownerUid) {
      // The Lease names a Node that is not the row's: store its owner in full.
      ({ set, remove } = change.spelledOut);
      ownerUid = undefined;
    }
    version = Math.max(version, stored + 1);
    // A renewal of a process that was frozen arrives late. The time of a later one stays, so no live node looks silent.
    receivedAtMs = Math.max(receivedAtMs, RECEIVED_AT_MS.of(row) ?? 0);
  }
  throw new StoreFault('throttled', 'the Lease changed too often to be renewed', { retryable: true });
}

export async function createLease(
  items: ItemUpdater,
  creation: LeaseWrite & { readonly uid: string },
): Promise<Exclude<LeaseWriteOutcome, { kind: 'absent' }>> {
  const { change, nowMs, tie, uid } = creation;
  const write = (form: { set: Item; remove: readonly string[] }, owner?: string): Promise<WriteOutcome> =>
    items.write(
      {
        kind: 'update',
        key: healthKey(change.nodeName),
        set: {
          ...form.set,
          ...changeOf(LEASE, {
            version: nowMs * RESOURCE_VERSIONS_PER_MS + Math.floor(tie * RESOURCE_VERSIONS_PER_MS),
            uid,
            createdAtSeconds: Math.floor(nowMs / 1_000),
          }).set,
          [RECEIVED_AT_MS.name]: nowMs,
        },
        remove: form.remove,
        when: all(lacks(LEASE.version.name), ...(owner === undefined ? [] : [holds(DIGEST.uid, owner)])),
      },
      { returnItem: true },
    );
  let outcome = await write(change, change.ownerUid);
  const lacking = outcome.kind === 'refused' && (outcome.current === undefined || !hasLease(outcome.current));
  if (lacking && change.ownerUid !== undefined) outcome = await write(change.spelledOut);
  if (outcome.kind === 'written') return { kind: 'written', row: outcome.item! };
  const row = outcome.current;
  if (row === undefined) throw new StoreFault('rejected', 'an absent lease was refused', { retryable: true });
  // The uid is unique: this row is the result of our own write; its response was lost.
  return { kind: LEASE.uid.of(row) === uid ? 'written' : 'conflict', row };
}

export interface LeaseStore {
  renewLease(renewal: LeaseRenewal): Promise<LeaseWriteOutcome>;
  createLease(creation: LeaseWrite & { readonly uid: string }): Promise<Exclude<LeaseWriteOutcome, { kind: 'absent' }>>;
  /** Removes the Lease and keeps the digest and the last receipt time of its Node. Returns the previous row. */
  deleteLease(
    nodeName: string,
    expected?: { readonly resourceVersion?: number; readonly uid?: string },
  ): Promise<LeaseWriteOutcome>;
  /** The row, with or without a lease, strongly consistent. `leaseOf` and `nodeHealthOf` read it. */
  getRow(nodeName: string): Promise<Item | undefined>;
  /** Rows that hold a lease, by node name. `next` is the name to continue after. */
  listLeases(page: {
    readonly limit?: number;
    readonly continueAfter?: string;
  }): Promise<{ readonly rows: readonly Item[]; readonly next?: string }>;
}

export function leaseStore(items: ItemStore): LeaseStore {
  return {
    renewLease: (renewal) => renewLease(items, renewal),
    createLease: (creation) => createLease(items, creation),

    async deleteLease(nodeName, expected = {}) {
      const key = healthKey(nodeName);
      const asExpected = [
        ...(expected.resourceVersion === undefined ? [] : [holds(LEASE.version, expected.resourceVersion)]),
        ...(expected.uid === undefined ? [] : [holds(LEASE.uid, expected.uid)]),
      ];
      const alone = await items.write(
        { kind: 'delete', key, when: all(holdsLease, lacks(DIGEST.uid.name), ...asExpected) },
        { returnPrevious: true },
      );
      if (alone.kind === 'written') return { kind: 'written', row: alone.previous! };
      if (alone.current === undefined || !hasLease(alone.current)) return { kind: 'absent' };
      if (!hasDigest(alone.current)) return { kind: 'conflict', row: alone.current };
      const outcome = await items.write(
        { kind: 'update', key, remove: namesOf(LEASE), when: all(holdsLease, ...asExpected) },
        { returnPrevious: true },
      );
      if (outcome.kind === 'written') return { kind: 'written', row: outcome.previous! };
      if (outcome.current === undefined || !hasLease(outcome.current)) return { kind: 'absent' };
      return { kind: 'conflict', row: outcome.current };
    },

    getRow: (nodeName) => items.get(healthKey(nodeName), { consistent: true }),

    async listLeases({ limit, continueAfter }) {
      const small = await scanSmallTable(items, { consistent: true });
      if (small !== undefined) return pageOf(small.filter(hasLease).toSorted(byName), { limit, continueAfter });
      const readers = healthPartitions().map(
        (pk) => (page: { after?: string; limit?: number }) =>
          items.query({ table: 'health', pk, consistent: true, ...page }),
      );
      const { items: rows, next } = await mergePages(readers, defined({ limit, after: continueAfter }));
      return { rows: rows.filter(hasLease), ...defined({ next }) };
    },
  };
}

const byName = (one: Item, other: Item): number => compareKeys(String(one.sk), String(other.sk));

function pageOf(
  rows: readonly Item[],
  { limit = Infinity, continueAfter = '' }: { limit: number | undefined; continueAfter: string | undefined },
): { readonly rows: readonly Item[]; readonly next?: string } {
  const following = rows.filter(({ sk }) => compareKeys(String(sk), continueAfter) > 0);
  const page = following.slice(0, limit);
  return page.length === following.length ? { rows: page } : { rows: page, next: String(page.at(-1)!.sk) };
}
