/**
 * The `health` table: leases and digests (health-row.ts). Writes that must happen together with a Node's are data, to
 * be put into a commit's `extra`; the others are done here.
 *
 * Who may meet: a beat is a single conditional update, a digest is written inside the transaction of its Node. Both touch
 * one item; DynamoDB serialises them, and the adapter repeats a beat that met a transaction. Neither overwrites the
 * other: they set different attributes.
 */
import type { NodeHealth } from '../domain/nodes/node-health.ts';
import type { HeartbeatTimes } from '../kube/heartbeat-times.ts';
import type {
  Condition,
  DeleteWrite,
  Item,
  ItemPosition,
  ItemStore,
  ItemUpdater,
  UpdateWrite,
  WriteOutcome,
} from '../ports/item-store.ts';
import { SCAN_SEGMENTS_MAX, StoreFault } from '../ports/item-store.ts';
import { all, any, is, lacks } from './conditions.ts';
import {
  DIGEST_ATTRIBUTES,
  HEARTBEAT_TIME_ATTRIBUTES,
  hasDigest,
  hasLease,
  healthKey,
  heartbeatTimesOf,
  LEASE_ATTRIBUTES,
  nodeHealthOf,
  noExecuteCode,
  readyCode,
} from './health-row.ts';
import { HEALTH_SHARDS, healthPartition, RESOURCE_VERSIONS_PER_MS } from './layout.ts';
import type { LeaseChange } from './lease-record.ts';
import { mergePages } from './merge-pages.ts';

/** Attempts at a beat: one, one more for an owner that is not the row's Node, one more for a version ahead of our clock. */
const RENEW_ATTEMPTS_MAX = 4;
/** Pages of one shard, or of one segment where a scan takes most segments: 1 MB each, about 5,000 nodes. */
const PAGES_MAX = 64;
/** For each of which a scan takes one segment more: half a page, as segments are never of one size. */
const ROWS_A_SEGMENT = 2_000;
/** Rows read one by one, at half a read unit at least each; a longer page reads the range of its names. */
const SINGLE_ROWS_MAX = 32;
/** Segments read at once. */
const SEGMENTS_AT_ONCE_MAX = 16;

export interface LeaseWrite {
  readonly change: LeaseChange;
  /** Server receipt time. */
  readonly nowMs: number;
  /** A number in [0, 1): tells apart two writers of one millisecond. */
  readonly tie: number;
}

export interface LeaseRenewal extends LeaseWrite {
  /** The version the writer read; absent for a patch without one, which never conflicts. */
  readonly expectedResourceVersion?: number;
  /** The uid the writer read, when it sent one. */
  readonly expectedUid?: string;
}

export type LeaseWriteOutcome =
  | { readonly kind: 'written' /** the whole row, digest included */; readonly row: Item }
  /** Another version or uid is stored; for a create: a lease is there. */
  | { readonly kind: 'conflict'; readonly row: Item }
  /** There is no lease. */
  | { readonly kind: 'absent' };

/**
 * A beat: one conditional update, no read. Answers the whole row, so that the beat's answer can say more than the Lease
 * (that the node is suspect, that its pods changed).
 *
 * An update whose answer was lost is sent again by the SDK and then refused by its own success; the row in the refusal
 * shows our very version and values, and counts as written.
 */
export async function renewLease(items: ItemUpdater, renewal: LeaseRenewal): Promise<LeaseWriteOutcome> {
  const { change, nowMs, tie, expectedResourceVersion, expectedUid } = renewal;
  let version = nowMs * RESOURCE_VERSIONS_PER_MS + Math.floor(tie * RESOURCE_VERSIONS_PER_MS);
  if (expectedResourceVersion !== undefined) version = Math.max(version, expectedResourceVersion + 1);
  let { set, remove, ownerUid }: { set: Item; remove: readonly string[]; ownerUid?: string } = change;
  for (let attempt = 1; attempt <= RENEW_ATTEMPTS_MAX; attempt += 1) {
    const values: Item = { ...set, v: version, r: nowMs };
    const outcome = await items.write(
      {
        kind: 'update',
        key: healthKey(change.nodeName),
        set: values,
        remove,
        when: all(
          expectedResourceVersion === undefined
            ? { kind: 'compare', attribute: 'v', op: '<', value: version }
            : is('v', expectedResourceVersion),
          ...(expectedUid === undefined ? [] : [is('i', expectedUid)]),
          ...(ownerUid === undefined ? [] : [is('u', ownerUid)]),
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
    if (expectedUid !== undefined && row['i'] !== expectedUid) return { kind: 'conflict', row };
    const stored = row['v'] as number;
    if (expectedResourceVersion !== undefined && stored !== expectedResourceVersion) return { kind: 'conflict', row };
    if (ownerUid !== undefined && row['u'] !== ownerUid) {
      // The Lease names a Node that is not the row's: keep what it says, word for word.
      ({ set, remove } = change.spelledOut);
      ownerUid = undefined;
    }
    version = Math.max(version, stored + 1);
  }
  throw new StoreFault('throttled', 'a lease kept changing under its renewal', { retryable: true });
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
          v: nowMs * RESOURCE_VERSIONS_PER_MS + Math.floor(tie * RESOURCE_VERSIONS_PER_MS),
          i: uid,
          c: Math.floor(nowMs / 1_000),
          r: nowMs,
        },
        remove: form.remove,
        when: all(lacks('v'), ...(owner === undefined ? [] : [is('u', owner)])),
      },
      { returnItem: true },
    );
  let outcome = await write(change, change.ownerUid);
  const lacking = outcome.kind === 'refused' && (outcome.current === undefined || !hasLease(outcome.current));
  if (lacking && change.ownerUid !== undefined) outcome = await write(change.spelledOut);
  if (outcome.kind === 'written') return { kind: 'written', row: outcome.item! };
  const row = outcome.current;
  if (row === undefined) throw new StoreFault('rejected', 'an absent lease was refused', { retryable: true });
  // The uid is ours alone: the row is the echo of a write whose answer was lost.
  return { kind: row['i'] === uid ? 'written' : 'conflict', row };
}

/** What the digest of a Node says. `statusAtMs` only when this very write is a status post; else it stays as it is. */
export type NodeDigest = Pick<
  NodeHealth,
  'uid' | 'zone' | 'ready' | 'excluded' | 'suspect' | 'noExecute' | 'createdAtMs'
> & {
  readonly statusAtMs?: number;
};

/**
 * Writes the digest, to be committed together with its Node: the Node's own condition keeps the order of digests. A new
 * Node starts without anything an earlier one of its name left behind (D2); a status post ends a mark; a node that is Ready
 * has no pods to be marked.
 */
export function describeNode(
  nodeName: string,
  digest: NodeDigest,
  { isNew }: { readonly isNew: boolean },
): UpdateWrite {
  const { ready, statusAtMs, noExecute } = digest;
  const set: Item = { u: digest.uid, b: digest.createdAtMs };
  const remove: string[] = [];
  const put = (name: string, value: string | number | undefined): void => {
    if (value === undefined) remove.push(name);
    else set[name] = value;
  };
  const code = noExecuteCode(noExecute);
  put('z', digest.zone === '' ? undefined : digest.zone);
  put('y', ready === undefined ? undefined : readyCode(ready));
  put('e', digest.excluded ? 1 : undefined);
  put('s', digest.suspect ? 1 : undefined);
  put('k', code === 0 ? undefined : code);
  if (statusAtMs !== undefined || isNew) put('l', statusAtMs);
  if (isNew || ready !== 'Unknown' || statusAtMs !== undefined) remove.push('m');
  if (isNew || ready === 'True') remove.push('w');
  if (isNew) remove.push(...HEARTBEAT_TIME_ATTRIBUTES);
  return { kind: 'update', key: healthKey(nodeName), set, remove };
}

/**
 * A status post of a node that was Ready and stays so, in which nothing but heartbeat times moved: a sign of life, by one
 * write unit. Refused for another Node, and for one that is marked, not Ready or suspect: its post must be written whole.
 */
export const confirmStatus = (
  nodeName: string,
  post: { readonly uid: string; readonly nowMs: number; readonly times: HeartbeatTimes },
): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  set: { l: post.nowMs, f: post.times.fromSeconds, g: post.times.toSeconds },
  when: all(is('u', post.uid), is('y', readyCode('True')), lacks('s'), lacks('m')),
});

/** A status post that says what is stored already, word for word: a sign of life all the same. */
export const statusReceived = (
  nodeName: string,
  post: { readonly uid: string; readonly nowMs: number },
): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  set: { l: post.nowMs },
  when: all(is('u', post.uid), lacks('m')),
});

/**
 * Marks a node Unknown and suspect for its silence, to be committed together with its Node. A beat or status post received
 * since `seen` was read refuses it: a living node is never marked on old knowledge.
 */
export function markUnknown(
  seen: NodeHealth,
  mark: {
    readonly nowMs: number;
    /** What the Node carries once it is marked. */
    readonly noExecute: NodeHealth['noExecute'];
    /** Pods of it are to be set not ready, and podsMarked is to follow. */
    readonly podsToMark: boolean;
  },
): UpdateWrite {
  const code = noExecuteCode(mark.noExecute);
  return {
    kind: 'update',
    key: healthKey(seen.nodeName),
    set: {
      y: readyCode('Unknown'),
      s: 1,
      m: mark.nowMs,
      ...(code === 0 ? {} : { k: code }),
      ...(mark.podsToMark ? { w: 1 } : {}),
    },
    ...(code === 0 ? { remove: ['k'] } : {}),
    when: unchangedSince(seen),
  };
}

/** All pods of the node are set not ready: the next tick need not look again. Refused for another Node. */
export const podsMarked = (nodeName: string, uid: string): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  remove: ['w'],
  when: all(is('u', uid), { kind: 'has', attribute: 'w' }),
});

/** Holds while the row still speaks of the same Node and nothing was received from it since it was read. */
export function unchangedSince(seen: NodeHealth): Condition {
  const earlier: Condition = { kind: 'compare', attribute: 'r', op: '<', value: seen.createdAtMs };
  const renewed: Condition = seen.renewedAtMs === undefined ? any(lacks('r'), earlier) : is('r', seen.renewedAtMs);
  const posted: Condition = seen.statusAtMs === undefined ? lacks('l') : is('l', seen.statusAtMs);
  return all(is('u', seen.uid), renewed, posted);
}

/** Its Node is deleted: the whole row goes, the Lease with it (D14). To be committed together with the deletion. */
export const forgetNode = (nodeName: string): DeleteWrite => ({ kind: 'delete', key: healthKey(nodeName) });

/**
 * Pods of the node changed: the answer of its next beat says so. Refused when the node has no row, so that none is made; that
 * is why it is a write of its own and joins no commit of a pod, which its refusal would refuse. A count and not the pod's
 * resourceVersion: pods live in shards whose changes arrive in any order, and a later word must never undo an earlier one.
 */
export const podsChanged = (nodeName: string): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  add: { p: 1 },
  when: { kind: 'itemExists' },
});

export interface HealthStore {
  renewLease(renewal: LeaseRenewal): Promise<LeaseWriteOutcome>;
  createLease(creation: LeaseWrite & { readonly uid: string }): Promise<Exclude<LeaseWriteOutcome, { kind: 'absent' }>>;
  /** Removes the Lease and keeps what is known of its Node, the last receipt included. Answers the row before. */
  deleteLease(
    nodeName: string,
    expected?: { readonly resourceVersion?: number; readonly uid?: string },
  ): Promise<LeaseWriteOutcome>;
  /** The row, lease or not, strongly consistent. `leaseOf` and `nodeHealthOf` read it. */
  getRow(nodeName: string): Promise<Item | undefined>;
  /** Rows that hold a lease, by node name. `next` is the name to continue after. */
  listLeases(page: {
    readonly limit?: number;
    readonly continueAfter?: string;
  }): Promise<{ readonly rows: readonly Item[]; readonly next?: string }>;
}

export function healthStore(items: ItemStore): HealthStore {
  return {
    renewLease: (renewal) => renewLease(items, renewal),
    createLease: (creation) => createLease(items, creation),

    async deleteLease(nodeName, expected = {}) {
      const key = healthKey(nodeName);
      const asExpected = [
        ...(expected.resourceVersion === undefined ? [] : [is('v', expected.resourceVersion)]),
        ...(expected.uid === undefined ? [] : [is('i', expected.uid)]),
      ];
      const has: Condition = { kind: 'has', attribute: 'v' };
      const alone = await items.write(
        { kind: 'delete', key, when: all(has, lacks('u'), ...asExpected) },
        { returnPrevious: true },
      );
      if (alone.kind === 'written') return { kind: 'written', row: alone.previous! };
      if (alone.current === undefined || !hasLease(alone.current)) return { kind: 'absent' };
      if (!hasDigest(alone.current)) return { kind: 'conflict', row: alone.current };
      const outcome = await items.write(
        { kind: 'update', key, remove: LEASE_ATTRIBUTES, when: all(has, ...asExpected) },
        { returnPrevious: true },
      );
      if (outcome.kind === 'written') return { kind: 'written', row: outcome.previous! };
      if (outcome.current === undefined || !hasLease(outcome.current)) return { kind: 'absent' };
      return { kind: 'conflict', row: outcome.current };
    },

    getRow: (nodeName) => items.get(healthKey(nodeName), { consistent: true }),

    async listLeases({ limit, continueAfter }) {
      const readers = Array.from(
        { length: HEALTH_SHARDS },
        (_, shard) => (page: { after?: string; limit?: number }) =>
          items.query({ table: 'health', pk: healthPartition(shard), consistent: true, ...page }),
      );
      const { items: rows, next } = await mergePages(readers, {
        ...(limit === undefined ? {} : { limit }),
        ...(continueAfter === undefined ? {} : { after: continueAfter }),
      });
      return { rows: rows.filter(hasLease), ...(next === undefined ? {} : { next }) };
    },
  };
}

/**
 * Segments of a scan over so many rows. Each is a request and half a read unit at least, so a small table is read in one; a
 * large one is read in many at once. Whatever the number, the rows are the same: only time and cost hang on it.
 */
export const scanSegmentsFor = (rows: number | undefined): number =>
  rows === undefined ? SCAN_SEGMENTS_MAX : Math.min(SCAN_SEGMENTS_MAX, Math.max(1, Math.ceil(rows / ROWS_A_SEGMENT)));

/**
 * The digest of every Node. A segment that cannot be read is a fault, never a smaller world: missing nodes would look
 * like deleted ones. Eventually consistent reads cost half and only ever make a beat look older: condition before acting.
 */
export async function scanHealth(
  items: ItemStore,
  at: {
    readonly consistent: boolean;
    /** As many as were there of late; absent when nobody knows. */
    readonly rowsExpected?: number | undefined;
  },
): Promise<NodeHealth[]> {
  const segments = scanSegmentsFor(at.rowsExpected);
  const found: NodeHealth[][] = Array.from({ length: segments }, () => []);
  let nextSegment = 0;
  const work = async (): Promise<void> => {
    while (nextSegment < segments) {
      const segment = nextSegment;
      nextSegment += 1;
      await scanSegment(items, { segment, segments, consistent: at.consistent }, found[segment]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(segments, SEGMENTS_AT_ONCE_MAX) }, work));
  return found.flat();
}

/** Digests of these nodes, strongly consistent, by name; one that is not there has no Node. */
export async function readHealth(
  items: ItemStore,
  nodeNames: readonly string[],
): Promise<ReadonlyMap<string, NodeHealth>> {
  if (nodeNames.length === 0) return new Map();
  const rows = await items.getMany(nodeNames.map(healthKey), { consistent: true });
  const found = new Map<string, NodeHealth>();
  for (const row of rows) {
    const health = row === undefined ? undefined : nodeHealthOf(row);
    if (health !== undefined) found.set(health.nodeName, health);
  }
  return found;
}

/** Heartbeat times of these nodes, whose names are in order; those without are left out. */
export async function readHeartbeatTimes(
  items: ItemStore,
  nodeNames: readonly string[],
  { consistent }: { readonly consistent: boolean },
): Promise<ReadonlyMap<string, HeartbeatTimes>> {
  const found = new Map<string, HeartbeatTimes>();
  const take = (row: Item | undefined): void => {
    const times = row === undefined ? undefined : heartbeatTimesOf(row);
    if (times !== undefined) found.set(row!['sk'] as string, times);
  };
  const single = nodeNames.length <= SINGLE_ROWS_MAX ? nodeNames : nodeNames.slice(0, 1);
  const [rows] = await Promise.all([
    single.length === 0 ? [] : items.getMany(single.map(healthKey), { consistent }),
    single.length === nodeNames.length
      ? []
      : Promise.all(
          Array.from({ length: HEALTH_SHARDS }, (_, shard) =>
            scanRange(items, shard, { after: nodeNames[0]!, through: nodeNames.at(-1)!, consistent }, take),
          ),
        ),
  ]);
  rows.forEach(take);
  return found;
}

async function scanRange(
  items: ItemStore,
  shard: number,
  range: { readonly after: string; readonly through: string; readonly consistent: boolean },
  take: (row: Item) => void,
): Promise<void> {
  let after: string | undefined = range.after;
  for (let pages = 0; pages < PAGES_MAX && after !== undefined; pages += 1) {
    const page = await items.query({
      table: 'health',
      pk: healthPartition(shard),
      ...range,
      after,
      attributes: HEARTBEAT_TIME_ATTRIBUTES,
    });
    page.items.forEach(take);
    after = page.next;
  }
}

async function scanSegment(
  items: ItemStore,
  part: { readonly segment: number; readonly segments: number; readonly consistent: boolean },
  into: NodeHealth[],
): Promise<void> {
  // As many in all, whatever the number of segments: a count that was too low must not make a table unreadable for good.
  const pagesMax = (PAGES_MAX * SCAN_SEGMENTS_MAX) / part.segments;
  let after: ItemPosition | undefined;
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await items.scan({
      table: 'health',
      ...part,
      attributes: DIGEST_ATTRIBUTES,
      ...(after === undefined ? {} : { after }),
    });
    for (const row of page.items) {
      const health = nodeHealthOf(row);
      if (health !== undefined) into.push(health);
    }
    if (page.next === undefined) return;
    after = page.next;
  }
  throw new StoreFault('too-large', 'a segment of the health table has more pages than a scan reads', {
    retryable: false,
  });
}
