/**
 * Digests of Nodes in the `health` table (health.ts); its leases: lease-store.ts. Writes that belong to the commit
 * of a Node are returned as data, for the commit's `extra`.
 *
 * Concurrency: a beat is a single conditional update; a digest is written in the transaction of its Node. Both change
 * one item. DynamoDB serialises them, and the adapter repeats a beat that conflicts with a transaction. They set
 * different attributes, so neither overwrites the other.
 */
import { defined } from '../../defined.ts';
import {
  type Condition,
  type DeleteWrite,
  type Item,
  type ItemPosition,
  type ItemStore,
  SCAN_SEGMENTS_MAX,
  StoreFault,
  type UpdateWrite,
} from '../../store/item-store.ts';
import {
  all,
  below,
  type ChangedValues,
  changeOf,
  healthKey,
  healthPartitions,
  holds,
  namesOf,
} from '../../store/layout.ts';
import { readAll } from '../../store/merge-pages.ts';
import {
  COUNTERS,
  DIGEST,
  DIGEST_ATTRIBUTES,
  HEARTBEAT_TIMES,
  type HeartbeatTimes,
  heartbeatTimesOf,
  type NodeHealth,
  nodeHealthOf,
  rowExists,
} from './health.ts';

/** Pages of one shard, or of one segment of a scan with the most segments: 1 MB each, about 5,000 nodes. */
const PAGES_MAX = 64;
/** Rows per segment of a scan: half a page, because segments differ in size. */
const ROWS_PER_SEGMENT = 2_000;
/**
 * For more rows than this, a Scan page is tried first, which may hold the whole table: it costs at most 128 read units,
 * and so many rows one by one cost the same.
 */
const ROWS_BEFORE_SCAN_MAX = 256;
/**
 * In a larger table, up to this many rows are read one by one, 100 per request, at half a read unit or more each. For
 * more, the range of names is read: one request and half a read unit or more per shard.
 */
const SINGLE_ROWS_MAX = 512;
/** Segments read concurrently. */
const SEGMENTS_AT_ONCE_MAX = 16;

/** What the commit of a Node stores of it. Absent marks stay as they are stored. */
export type NodeDigest = Pick<
  NodeHealth,
  'uid' | 'zone' | 'ready' | 'excluded' | 'suspect' | 'noExecute' | 'createdAtMs' | 'profile' | 'plannedUntilMs'
> & {
  /** Set only if this write is a status post. */
  readonly statusAtMs?: number;
  /** Set only if this write changes the profile of an existing Node. */
  readonly profileChangedAtMs?: number;
  /** Set only if this write ends a promise. */
  readonly silenceEndedAtMs?: number;
};

const HEARTBEAT_TIME_NAMES = namesOf(HEARTBEAT_TIMES);

const NODE = { ...DIGEST, ...HEARTBEAT_TIMES };

const update = (nodeName: string, values: ChangedValues<typeof NODE>, when?: Condition): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  ...changeOf(NODE, values),
  ...defined({ when }),
});

/**
 * Writes the digest, in the commit of its Node: the condition on the Node keeps digests in order. A new Node inherits
 * nothing from an earlier one of its name (D2). A status post removes the mark. A Ready node has no pods to mark.
 */
export function describeNode(
  nodeName: string,
  digest: NodeDigest,
  { isNew }: { readonly isNew: boolean },
): UpdateWrite {
  const { profileChangedAtMs, plannedUntilMs, silenceEndedAtMs, statusAtMs, ready, ...others } = digest;
  const isPost = statusAtMs !== undefined;
  const endsPromise = plannedUntilMs === undefined && silenceEndedAtMs !== undefined;
  // A promise that ended stays until the next status post, which is a later sign of life.
  const changesPromise = plannedUntilMs !== undefined || isPost || isNew;
  return update(nodeName, {
    profile: undefined,
    ...others,
    ready,
    ...(profileChangedAtMs !== undefined || isNew ? { profileChangedAtMs } : {}),
    ...(endsPromise ? { silenceEndedAtMs } : changesPromise ? { plannedUntilMs } : {}),
    ...(isPost || isNew ? { statusAtMs } : {}),
    ...(isNew || isPost || ready !== 'Unknown' ? { markedAtMs: undefined } : {}),
    ...(isNew || ready === 'True' ? { podsToMark: false } : {}),
    ...(isNew ? { flaps: undefined, fromSeconds: undefined, toSeconds: undefined } : {}),
  });
}

/**
 * A status post in which only heartbeat times changed, of a node that was and stays Ready. It costs one write unit.
 * Refused for another Node, and for a node that is marked, not Ready or suspect: its post must be written in full.
 */
export const confirmStatus = (
  nodeName: string,
  post: { readonly uid: string; readonly nowMs: number; readonly times: HeartbeatTimes },
): UpdateWrite =>
  update(
    nodeName,
    { statusAtMs: post.nowMs, ...post.times },
    all(
      holds(DIGEST.uid, post.uid),
      holds(DIGEST.ready, 'True'),
      holds(DIGEST.suspect, false),
      holds(DIGEST.markedAtMs, undefined),
    ),
  );

/** A status post that equals the stored status. It still proves that the node is alive. */
export const statusReceived = (nodeName: string, post: { readonly uid: string; readonly nowMs: number }): UpdateWrite =>
  update(nodeName, { statusAtMs: post.nowMs }, all(holds(DIGEST.uid, post.uid), holds(DIGEST.markedAtMs, undefined)));

/**
 * Marks a silent node Unknown and suspect, in the commit of its Node. It is refused if a beat or status post was
 * received since `seen` was read, so a node that is alive is never marked because of a stale read.
 */
export const markUnknown = (
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
): UpdateWrite =>
  update(
    seen.nodeName,
    {
      ready: 'Unknown',
      suspect: true,
      markedAtMs: mark.nowMs,
      noExecute: mark.noExecute,
      ...(mark.podsToMark ? { podsToMark: true } : {}),
      ...(mark.flaps === undefined ? {} : { flaps: mark.flaps }),
    },
    unchangedSince(seen),
  );

/** All pods of the node are set not ready: later ticks skip them. Refused for another Node. */
export const podsMarked = (nodeName: string, uid: string): UpdateWrite =>
  update(nodeName, { podsToMark: false }, all(holds(DIGEST.uid, uid), holds(DIGEST.podsToMark, true)));

/**
 * Holds while the row is of the same Node, nothing was received from it since `seen` was read, and its deadline follows
 * from the same promise and profile. Its marks are those of `seen`: the mark that follows replaces them.
 */
export const unchangedSince = (seen: NodeHealth): Condition =>
  all(
    holds(DIGEST.uid, seen.uid),
    seen.renewedAtMs === undefined
      ? // A beat of an earlier Node may remain.
        below(DIGEST.renewedAtMs, seen.createdAtMs)
      : holds(DIGEST.renewedAtMs, seen.renewedAtMs),
    holds(DIGEST.statusAtMs, seen.statusAtMs),
    samePromise(seen),
    holds(DIGEST.profile, seen.profile),
    holds(DIGEST.profileChangedAtMs, seen.profileChangedAtMs),
    holds(DIGEST.flaps, seen.flaps),
  );

/**
 * Stores that a node begins or ends flapping, in the commit of its Node. Refused for another Node, and when it was
 * marked since `seen` was read. `flaps` undefined: no mark is left to count.
 */
export const flapsChanged = (seen: NodeHealth, flaps: Uint8Array | undefined): UpdateWrite =>
  update(seen.nodeName, { flaps }, all(holds(DIGEST.uid, seen.uid), holds(DIGEST.flaps, seen.flaps)));

/** Holds while the promise of silence is the one of `seen`: a promise may come between a read and a taint. */
export const samePromise = ({ plannedUntilMs, silenceEndedAtMs }: NodeHealth): Condition =>
  plannedUntilMs === undefined
    ? holds(DIGEST.silenceEndedAtMs, silenceEndedAtMs)
    : holds(DIGEST.plannedUntilMs, plannedUntilMs);

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
  add: { [COUNTERS.podsVersion.name]: 1 },
  when: rowExists,
});

/**
 * In the commit that removes a pod of a silent node: refused if a beat or status post was received since `seen` was
 * read. It counts as a change of the node's pods: the response to its next beat reports it.
 */
export const podRemoved = (seen: NodeHealth): UpdateWrite => ({
  ...podsChanged(seen.nodeName),
  when: unchangedSince(seen),
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
 * The whole table, if one page holds it: up to 1 MB, about 5,000 nodes. One request in place of one per shard.
 * undefined for a larger table, after one page of read units.
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
    if (times !== undefined) found.set(String(row?.sk), times);
  };
  const readSingly = async (names: readonly string[]): Promise<void> =>
    names.length === 0 ? undefined : (await items.getMany(names.map(healthKey), { consistent })).forEach(addRow);
  const whole =
    triesScan && nodeNames.length > ROWS_BEFORE_SCAN_MAX
      ? await scanSmallTable(items, { consistent, attributes: HEARTBEAT_TIME_NAMES })
      : undefined;
  if (whole !== undefined) {
    const wanted = new Set(nodeNames);
    for (const row of whole) if (wanted.has(String(row.sk))) addRow(row);
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
      attributes: HEARTBEAT_TIME_NAMES,
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
