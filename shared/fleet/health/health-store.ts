/**
 * Digests of Nodes in the `health` table (health-row.ts); its leases: lease-store.ts. Writes that belong to the commit
 * of a Node are returned as data, for the commit's `extra`.
 *
 * Concurrency: a beat is a single conditional update; a digest is written in the transaction of its Node. Both change
 * one item. DynamoDB serialises them, and the adapter repeats a beat that conflicts with a transaction. They set
 * different attributes, so neither overwrites the other.
 */
import { defined } from '../../defined.ts';
import { readAll } from '../../store/bounded-reads.ts';
import { all, any, is, lacks } from '../../store/conditions.ts';
import type { Condition, DeleteWrite, Item, ItemPosition, ItemStore, UpdateWrite } from '../../store/item-store.ts';
import { SCAN_SEGMENTS_MAX, StoreFault } from '../../store/item-store.ts';
import { healthPartitions } from '../../store/layout.ts';
import type { HeartbeatTimes } from '../nodes/heartbeat-times.ts';
import {
  DIGEST_ATTRIBUTES,
  HEARTBEAT_TIME_ATTRIBUTES,
  type HealthRow,
  healthKey,
  heartbeatTimesOf,
  nodeHealthOf,
  noExecuteCode,
  readyCode,
  rowExists,
} from './health-row.ts';
import type { NodeHealth } from './node-health.ts';

/** Pages of one shard, or of one segment of a scan with the most segments: 1 MB each, about 5,000 nodes. */
const PAGES_MAX = 64;
/** Rows per segment of a scan: half a page, because segments differ in size. */
const ROWS_PER_SEGMENT = 2_000;
/**
 * For more rows than this, a Scan page is tried first, which may hold the whole table: it costs at most 128 read units, and
 * so many rows one by one cost the same.
 */
const ROWS_BEFORE_SCAN_MAX = 256;
/**
 * In a larger table, up to this many rows are read one by one, 100 per request, at half a read unit or more each. For
 * more, the range of names is read: one request and half a read unit or more per shard.
 */
const SINGLE_ROWS_MAX = 512;
/** Segments read concurrently. */
const SEGMENTS_AT_ONCE_MAX = 16;

/** The digest of a Node. `statusAtMs` is set only if this write is a status post; otherwise the stored one is kept. */
export type NodeDigest = Pick<
  NodeHealth,
  'uid' | 'zone' | 'ready' | 'excluded' | 'suspect' | 'noExecute' | 'createdAtMs'
> & {
  readonly statusAtMs?: number;
  /** Name of the profile; absent: `default`. */
  readonly profile?: string;
  /** Set only if this write changes the profile of an existing Node. */
  readonly profileChangedAtMs?: number;
  /** Promised end of the planned silence; absent without a promise. */
  readonly plannedUntilMs?: number;
  /** Set only if this write ends a promise. */
  readonly silenceEndedAtMs?: number;
};

/**
 * Writes the digest, in the commit of its Node: the condition on the Node keeps digests in order. A new Node inherits
 * nothing from an earlier one of its name (D2). A status post removes the mark. A Ready node has no pods to mark.
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
  put('P', digest.profile);
  const { profileChangedAtMs } = digest;
  if (profileChangedAtMs !== undefined || isNew) {
    put('C', profileChangedAtMs === undefined ? undefined : Math.floor(profileChangedAtMs / 1_000));
  }
  // A promise that ended stays until the next status post, which is a later sign of life.
  const { plannedUntilMs, silenceEndedAtMs } = digest;
  if (plannedUntilMs !== undefined) put('S', Math.ceil(plannedUntilMs / 1_000));
  else if (silenceEndedAtMs !== undefined) put('S', -Math.ceil(silenceEndedAtMs / 1_000));
  else if (isNew || statusAtMs !== undefined) put('S', undefined);
  if (statusAtMs !== undefined || isNew) put('l', statusAtMs);
  if (isNew || ready !== 'Unknown' || statusAtMs !== undefined) remove.push('m');
  if (isNew || ready === 'True') remove.push('w');
  if (isNew) remove.push('F', ...HEARTBEAT_TIME_ATTRIBUTES);
  return { kind: 'update', key: healthKey(nodeName), set, remove };
}

/**
 * A status post in which only heartbeat times changed, of a node that was and stays Ready. It costs one write unit.
 * Refused for another Node, and for a node that is marked, not Ready or suspect: its post must be written in full.
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

/** A status post that equals the stored status. It still proves that the node is alive. */
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
 * Marks a silent node Unknown and suspect, in the commit of its Node. It is refused if a beat or status post was
 * received since `seen` was read, so a node that is alive is never marked because of a stale read.
 */
export function markUnknown(
  seen: NodeHealth,
  mark: {
    readonly nowMs: number;
    /** NoExecute taints of the Node after the mark. */
    readonly noExecute: NodeHealth['noExecute'];
    /** Its pods must be set not ready; podsMarked follows. */
    readonly podsToMark: boolean;
    /** Its marks, with this one; absent: this one does not count. */
    readonly flaps?: Uint8Array | undefined;
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
      ...defined({ F: mark.flaps }),
    },
    ...(code === 0 ? { remove: ['k'] } : {}),
    when: unchangedSince(seen),
  };
}

/** All pods of the node are set not ready: later ticks skip them. Refused for another Node. */
export const podsMarked = (nodeName: string, uid: string): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  remove: ['w'],
  when: all(is('u', uid), { kind: 'has', attribute: 'w' }),
});

/**
 * Holds while the row is of the same Node, nothing was received from it since `seen` was read, and its deadline follows
 * from the same promise and profile. Its marks are those of `seen`: the mark that follows replaces them.
 */
export function unchangedSince(seen: NodeHealth): Condition {
  const earlier: Condition = { kind: 'compare', attribute: 'r', op: '<', value: seen.createdAtMs };
  const renewed: Condition = seen.renewedAtMs === undefined ? any(lacks('r'), earlier) : is('r', seen.renewedAtMs);
  const posted: Condition = seen.statusAtMs === undefined ? lacks('l') : is('l', seen.statusAtMs);
  return all(is('u', seen.uid), renewed, posted, samePromise(seen), ...sameProfile(seen), isOrLacks('F', seen.flaps));
}

/**
 * Stores that a node begins or ends flapping, in the commit of its Node. Refused for another Node, and when it was marked
 * since `seen` was read. `flaps` undefined: no mark is left to count.
 */
export const flapsChanged = (seen: NodeHealth, flaps: Uint8Array | undefined): UpdateWrite => ({
  kind: 'update',
  key: healthKey(seen.nodeName),
  ...(flaps === undefined ? { remove: ['F'] } : { set: { F: flaps } }),
  when: all(is('u', seen.uid), isOrLacks('F', seen.flaps)),
});

const isOrLacks = (attribute: string, value: string | number | Uint8Array | undefined): Condition =>
  value === undefined ? lacks(attribute) : is(attribute, value);

/** Holds while the promise of silence is the one of `seen`: a promise may come between a read and a taint. */
export function samePromise({ plannedUntilMs, silenceEndedAtMs }: NodeHealth): Condition {
  const untilMs = plannedUntilMs ?? (silenceEndedAtMs === undefined ? undefined : -silenceEndedAtMs);
  return isOrLacks('S', untilMs === undefined ? undefined : untilMs / 1_000);
}

const sameProfile = ({ profile, profileChangedAtMs }: NodeHealth): readonly Condition[] => [
  isOrLacks('P', profile),
  isOrLacks('C', profileChangedAtMs === undefined ? undefined : profileChangedAtMs / 1_000),
];

/** Deletes the row of a deleted Node, with its Lease (D14), in the commit of the deletion. */
export const forgetNode = (nodeName: string): DeleteWrite => ({ kind: 'delete', key: healthKey(nodeName) });

/**
 * Pods of the node changed: the response to its next beat reports it. Refused if the node has no row, because it must
 * not create one. Therefore it is a separate write and not part of the pod's commit, which a refusal would cancel. It
 * is a counter and not the pod's resourceVersion, because changes of different shards arrive in any order.
 */
export const podsChanged = (nodeName: string): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  add: { p: 1 },
  when: rowExists,
});

/**
 * Number of segments for a scan of this many rows. Each segment is a request and costs half a read unit or more, so a
 * small table is read in one and a large one in many concurrently. The number changes time and cost, not the rows.
 */
export const scanSegmentsFor = (rows: number | undefined): number =>
  rows === undefined ? SCAN_SEGMENTS_MAX : Math.min(SCAN_SEGMENTS_MAX, Math.max(1, Math.ceil(rows / ROWS_PER_SEGMENT)));

/**
 * The digest of every Node. Throws if a segment cannot be read: missing nodes would look like deleted ones. An
 * eventually consistent read costs half and may show an older beat, so writes that follow must be conditional.
 */
export async function scanHealth(
  items: ItemStore,
  at: {
    readonly consistent: boolean;
    /** Rows of the previous scan; absent if unknown. */
    readonly rowsExpected?: number | undefined;
  },
): Promise<NodeHealth[]> {
  const segments = scanSegmentsFor(at.rowsExpected);
  const found: Item[][] = Array.from({ length: segments }, () => []);
  let nextSegment = 0;
  const work = async (): Promise<void> => {
    while (nextSegment < segments) {
      const segment = nextSegment;
      nextSegment += 1;
      await scanSegment(items, { segment, segments, consistent: at.consistent }, found[segment]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(segments, SEGMENTS_AT_ONCE_MAX) }, work));
  return found.flat().flatMap((row) => nodeHealthOf(row) ?? []);
}

/**
 * The whole table, if one page holds it: up to 1 MB, about 5,000 nodes. One request in place of one per shard. undefined
 * for a larger table, after one page of read units.
 */
export async function scanSmallTable(
  items: ItemStore,
  read: { readonly consistent: boolean; readonly attributes?: readonly string[] },
): Promise<readonly Item[] | undefined> {
  const page = await items.scan({ table: 'health', segment: 0, segments: 1, ...read });
  return page.next === undefined ? page.items : undefined;
}

/** Digests of these nodes, strongly consistent, by name; without an entry for a node that has no Node object. */
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

export interface TimesRead {
  readonly consistent: boolean;
  /** False: the table is known to be larger than a Scan page. */
  readonly triesScan?: boolean;
  /** The table is larger than a Scan page. */
  readonly onLarge?: () => void;
}

/** Heartbeat times of these nodes, by name; nodes without them have no entry. `nodeNames` is in order. */
export async function readHeartbeatTimes(
  items: ItemStore,
  nodeNames: readonly string[],
  { consistent, triesScan = true, onLarge }: TimesRead,
): Promise<ReadonlyMap<string, HeartbeatTimes>> {
  const found = new Map<string, HeartbeatTimes>();
  const addRow = (row: Item | undefined): void => {
    const times = row === undefined ? undefined : heartbeatTimesOf(row);
    if (times !== undefined) found.set((row as HealthRow).sk, times);
  };
  const readSingly = async (names: readonly string[]): Promise<void> =>
    names.length === 0 ? undefined : (await items.getMany(names.map(healthKey), { consistent })).forEach(addRow);
  const whole =
    triesScan && nodeNames.length > ROWS_BEFORE_SCAN_MAX
      ? await scanSmallTable(items, { consistent, attributes: HEARTBEAT_TIME_ATTRIBUTES })
      : undefined;
  if (whole !== undefined) {
    const wanted = new Set(nodeNames);
    for (const row of whole) if (wanted.has((row as HealthRow).sk)) addRow(row);
  } else {
    if (triesScan && nodeNames.length > ROWS_BEFORE_SCAN_MAX) onLarge?.();
    if (nodeNames.length <= SINGLE_ROWS_MAX) await readSingly(nodeNames);
    else {
      const range = { after: nodeNames[0]!, through: nodeNames.at(-1)!, consistent };
      await Promise.all([
        readSingly(nodeNames.slice(0, 1)),
        readAll(healthPartitions(), (pk) => scanRange(items, pk, range, addRow)),
      ]);
    }
  }
  return found;
}

interface NameRange {
  readonly after: string;
  readonly through: string;
  readonly consistent: boolean;
}

async function scanRange(items: ItemStore, pk: string, range: NameRange, onRow: (row: Item) => void): Promise<void> {
  let after: string | undefined = range.after;
  for (let pages = 0; pages < PAGES_MAX && after !== undefined; pages += 1) {
    const page = await items.query({
      table: 'health',
      pk,
      ...range,
      after,
      attributes: HEARTBEAT_TIME_ATTRIBUTES,
    });
    page.items.forEach(onRow);
    after = page.next;
  }
}

async function scanSegment(
  items: ItemStore,
  part: { readonly segment: number; readonly segments: number; readonly consistent: boolean },
  into: Item[],
): Promise<void> {
  // The bound on all pages does not depend on the number of segments: a low row count must not make a table unreadable.
  const pagesMax = (PAGES_MAX * SCAN_SEGMENTS_MAX) / part.segments;
  let after: ItemPosition | undefined;
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await items.scan({
      table: 'health',
      ...part,
      attributes: DIGEST_ATTRIBUTES,
      ...defined({ after }),
    });
    for (const row of page.items) into.push(row);
    if (page.next === undefined) return;
    after = page.next;
  }
  throw new StoreFault('too-large', 'a segment of the health table has more pages than a scan reads', {
    retryable: false,
  });
}
