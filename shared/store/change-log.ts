/**
 * The change log, which a watch reads: all changes of a resource after a resourceVersion, in order, each once.
 *
 * The problem: a commit chooses its version before it is in the table, so a lower version may appear after a higher one
 * was read. A reader that only remembers the highest version it read would skip the late one forever.
 *
 * Every shard of a resource has a head item with `rv`. A commit with version v into shard s writes, in one transaction,
 * its objects, its log entries, and head(s).rv := v under the condition head(s).rv < v. A reader that wants to deliver
 * everything up to R
 *
 *   1. reads all heads, strongly consistent, and sets R = the highest rv among them;
 *   2. raises every lower head to R, by an update under the condition head(s).rv < R;
 *   3. reads each shard's log strictly above its cursor up to R, strongly consistent, and merges by version.
 *
 * Why no change is missed:
 *   - After step 2 every head is at least R: it was, or our update raised it, or our update was refused because it was.
 *     Heads never decrease.
 *   - A commit with v <= R that is not applied by then finds head(s).rv >= R >= v and is refused. Its writer retries
 *     with a version above R, which a later read finds.
 *   - A commit that is applied by then has its log entries in the table, because they were written with the head.
 *     Step 3 reads them.
 * So the log up to R is complete when step 3 begins.
 *
 * One log item holds all changes of a commit in a shard, under the version of the last one. That version may be above R
 * when the first one is not: the head was below R when step 1 read it, and the commit was applied before step 2. The
 * head in step 2 then has its last version as `c`. So step 3 reads each shard up to the higher of R and c, and leaves
 * out changes above R. Items of a shard do not overlap, because a commit is above the head that the previous one set.
 *
 * Versions of a resource are distinct (see object-store.ts), so a
 * cursor at any of them, or at R, divides the changes without a tie.
 *
 * A list works the same way: R is fixed and raised first, then the objects are read. They contain every change up to R
 * and may contain later ones. A watch from R delivers those again, which is harmless, because a client applies states.
 *
 * Quiet shards cost nothing: `c` on the head is the highest version committed there (raising does not change it), and a
 * log is read only if c is above the cursor. A poll starts with an eventually consistent read of the heads. What it
 * misses, the next poll reads.
 *
 * Expiry: log entries have a TTL of LOG_RETENTION_SECONDS and a margin after their version, so all entries after a
 * cursor younger than the retention still exist. An older cursor is expired only if something was committed after it.
 * To avoid that in a quiet cluster, lists and held watches raise a version older than FRESHEN_AFTER_SECONDS to the
 * current time, as in step 2.
 */
import type { Clock } from '../clock.ts';
import { defined } from '../defined.ts';
import { type Item, type ItemKey, type ItemStore, itemBytes, StoreFault } from './item-store.ts';
import {
  ALONE,
  below,
  changeOf,
  headPartition,
  LOG_RETENTION_SECONDS,
  logPartition,
  RESOURCE_VERSIONS_PER_MS,
  readRow,
  resourceVersionKey,
} from './layout.ts';
import { HEAD, type LogEntry, logEntries, type ObjectChange } from './object-record.ts';

/** A returned resourceVersion is never older than this. Seconds. */
const FRESHEN_AFTER_SECONDS = 600;
/** Older than every change. 0 would ask for any version. */
const OLDEST_VERSION = 1;
/** Assumed when a page of the log is requested. With fewer, one read needs several pages. */
const CHANGES_PER_LOG_ITEM = 8;
/** Pages of one shard's log in one read, at 1 MB. */
const LOG_PAGES_MAX = 64;

export type ChangesOutcome =
  | {
      readonly kind: 'changes';
      /** By resourceVersion, oldest first. */
      readonly changes: readonly ObjectChange[];
      /** All changes up to here have been delivered: the cursor of the next read, and the version of a bookmark. */
      readonly through: number;
      /** There are later changes, committed before the read: they are above the limit, or were not accepted. */
      readonly more: boolean;
      /** Of a copy of another store: no cursor between these two versions can be continued. */
      readonly missed?: MissedVersions;
    }
  /** Changes after the cursor may have expired: 410 Expired, list again. */
  | { readonly kind: 'expired' };

export interface MissedVersions {
  readonly after: number;
  readonly before: number;
}

export const isMissed = (version: number, missed: MissedVersions | undefined): boolean =>
  missed !== undefined && version > missed.after && version < missed.before;

export interface ChangeLog {
  /**
   * At most `limit` changes after the version `after`. `eager: false` starts with an eventually consistent read, which
   * costs less and may be late; true reads everything that is committed. `accepts` sees the changes in their order, and
   * returns false for the first one that is left to a later read, with all after it. Absent: it accepts all. A reader
   * that accepts so many bytes says so by `bytesMax`: little more of the logs is read. Absent: no bound.
   */
  readChanges(
    request: LogCursor & {
      readonly limit: number;
      readonly eager?: boolean;
      readonly accepts?: (change: ObjectChange) => boolean;
      readonly bytesMax?: number;
    },
  ): Promise<ChangesOutcome>;
  /**
   * Whether nothing was committed after each cursor, by one read of all heads: a read unit per shard, or half of one if
   * it is eventually consistent, and may be late. False also for a cursor that is so old that a read should raise it.
   */
  areQuiet(cursors: readonly LogCursor[], options: { readonly consistent: boolean }): Promise<readonly boolean[]>;
  /** The version of a list, read before the list: a watch from here delivers every later change. */
  currentVersion(resource: string): Promise<number>;
  /**
   * The version of the last commit of each resource, 0 for none. One read unit per shard, or half of one if the read is
   * eventually consistent.
   */
  newestCommits(resources: readonly string[], options: { readonly consistent: boolean }): Promise<readonly number[]>;
}

export interface LogCursor {
  readonly resource: string;
  /** A resourceVersion. */
  readonly after: number;
}

interface Head {
  readonly shard: number;
  /** No version at or below this can be committed any more. */
  readonly raisedTo: number;
  /** The highest version committed. */
  readonly committed: number;
  /** The log has all changes after this version, */
  readonly logFrom: number;
  /** but for changes between these. */
  readonly missed: MissedVersions | undefined;
}

export interface ChangeLogOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly shardsOf: (resource: string) => number;
}

export const changeLog = (options: ChangeLogOptions): ChangeLog => ({
  readChanges: (request) => readChanges(options, request),
  areQuiet: (cursors, { consistent }) => areQuiet(options, cursors, consistent),
  currentVersion: (resource) => currentVersion(options, resource),
  newestCommits: (resources, { consistent }) => newestCommits(options, resources, consistent),
});

async function newestCommits(
  { items, shardsOf }: ChangeLogOptions,
  resources: readonly string[],
  consistent: boolean,
): Promise<readonly number[]> {
  const shards = resources.flatMap((resource) =>
    Array.from({ length: shardsOf(resource) }, (_, shard) => ({ resource, shard })),
  );
  const keys = shards.map(({ resource, shard }) => headKey(resource, shard));
  const heads = await items.getMany(keys, { consistent });
  return resources.map((resource) =>
    Math.max(0, ...heads.map((item, at) => (shards[at]?.resource === resource ? headOf(0, item).committed : 0))),
  );
}

/**
 * While the tables refuse writes, reads go on: below the lowest head nothing can be committed any more. That version
 * is as complete as one that was raised. It may be older. At worst a watch from there is answered 410, and lists again.
 */
async function currentVersion(options: ChangeLogOptions, resource: string): Promise<number> {
  try {
    return (await closeLog(options, resource)).version;
  } catch (fault) {
    if (!(fault instanceof StoreFault && fault.retryable)) throw fault;
    const heads = await readHeads(options, resource, true);
    return Math.max(OLDEST_VERSION, Math.min(...heads.map((head) => head.raisedTo)));
  }
}

/** The lowest resourceVersion that was issued this many seconds ago. */
const versionBefore = (nowMs: number, seconds: number): number => (nowMs - seconds * 1_000) * RESOURCE_VERSIONS_PER_MS;

async function readChanges(
  options: ChangeLogOptions,
  request: Parameters<ChangeLog['readChanges']>[0],
): Promise<ChangesOutcome> {
  const { resource, after, limit, eager = false, accepts = () => true, bytesMax = Number.POSITIVE_INFINITY } = request;
  if (limit < 1) throw new RangeError('the limit of a read is at least one change');
  const { clock } = options;
  if (!eager && isFresh(options, after) && (await areQuiet(options, [{ resource, after }], false))[0] === true) {
    return { kind: 'changes', changes: [], through: after, more: false };
  }
  const { version, heads } = await closeLog(options, resource);
  const changed = heads.filter((head) => head.committed > after);
  // The heads of a resource have the same.
  const { missed } = heads[0]!;
  if (changed.length === 0) {
    return { kind: 'changes', changes: [], through: Math.max(after, version), more: false, ...defined({ missed }) };
  }
  if (after < versionBefore(clock.nowMs(), LOG_RETENTION_SECONDS)) return { kind: 'expired' };
  if (heads.some((head) => after < head.logFrom || isMissed(after, head.missed))) return { kind: 'expired' };
  const logs = await Promise.all(
    changed.map(({ shard, committed }) => {
      const range = { after, through: Math.max(version, committed), limit, bytesMax: bytesMax / changed.length };
      return readLog(options.items, { resource, shard, range });
    }),
  );
  return { ...mergeLogs(logs, { after, version, limit, accepts }), ...defined({ missed }) };
}

const isFresh = ({ clock }: ChangeLogOptions, after: number): boolean =>
  after >= versionBefore(clock.nowMs(), FRESHEN_AFTER_SECONDS);

async function areQuiet(
  options: ChangeLogOptions,
  cursors: readonly LogCursor[],
  consistent: boolean,
): Promise<readonly boolean[]> {
  const resources = cursors.map(({ resource }) => resource);
  const newest = await newestCommits(options, resources, consistent);
  return cursors.map(({ after }, index) => isFresh(options, after) && newest[index]! <= after);
}

const headKey = (resource: string, shard: number): ItemKey => ({
  table: 'objects',
  pk: headPartition(resource, shard),
  sk: ALONE,
});

async function readHeads(
  { items, shardsOf }: ChangeLogOptions,
  resource: string,
  consistent: boolean,
): Promise<Head[]> {
  const keys = Array.from({ length: shardsOf(resource) }, (_, shard) => headKey(resource, shard));
  return (await items.getMany(keys, { consistent })).map((item, shard) => headOf(shard, item));
}

/** Steps 1 and 2. */
async function closeLog(options: ChangeLogOptions, resource: string): Promise<{ version: number; heads: Head[] }> {
  const heads = await readHeads(options, resource, true);
  const nowMs = options.clock.nowMs();
  const highest = Math.max(...heads.map((head) => head.raisedTo));
  const isStale = highest < versionBefore(nowMs, FRESHEN_AFTER_SECONDS);
  const version = isStale ? versionBefore(nowMs, 0) : highest;
  return { version, heads: await Promise.all(heads.map((head) => raise(options.items, resource, { head, version }))) };
}

/** Step 2. Returns the head at the raise or later: its `committed` includes every commit up to `version`. */
async function raise(
  items: ItemStore,
  resource: string,
  { head, version }: { readonly head: Head; readonly version: number },
): Promise<Head> {
  if (head.raisedTo >= version) return head;
  const outcome = await items.write(
    {
      kind: 'update',
      key: headKey(resource, head.shard),
      set: changeOf(HEAD, { version }).set,
      when: below(HEAD.version, version),
    },
    { returnItem: true },
  );
  return headOf(head.shard, outcome.kind === 'written' ? outcome.item : outcome.current);
}

interface ShardLog {
  readonly entries: readonly LogEntry[];
  /** All changes up to this version are among `entries`. */
  readonly completeThrough: number;
}

/**
 * Step 3 for one shard: at least `limit` changes, all, or those of `bytesMax` as they are stored or of LOG_PAGES_MAX
 * pages; the next read continues there.
 * The key of an item is the version of its last change, so a cursor between two changes of one item finds it, and the
 * earlier ones are left out.
 */
async function readLog(
  items: ItemStore,
  {
    resource,
    shard,
    range,
  }: {
    readonly resource: string;
    readonly shard: number;
    readonly range: Readonly<Record<'after' | 'through' | 'limit' | 'bytesMax', number>>;
  },
): Promise<ShardLog> {
  const entries: LogEntry[] = [];
  let after = resourceVersionKey(range.after);
  let readThrough = range.after;
  let bytes = 0;
  for (let pages = 0; pages < LOG_PAGES_MAX; pages += 1) {
    const page = await items.query({
      table: 'objects',
      pk: logPartition(resource, shard),
      consistent: true,
      after,
      through: resourceVersionKey(range.through),
      limit: Math.ceil(range.limit / CHANGES_PER_LOG_ITEM),
    });
    for (const item of page.items) {
      for (const entry of logEntries(resource, item)) if (entry.resourceVersion > range.after) entries.push(entry);
      readThrough = Number(item['sk']);
      if (Number.isFinite(range.bytesMax)) bytes += itemBytes(item);
      // The rest of the page stays compressed: decompressed, a page of 1 MB may be twenty times as large.
      if (entries.length >= range.limit || (bytes >= range.bytesMax && entries.length > 0)) {
        return { entries, completeThrough: readThrough };
      }
    }
    if (page.next === undefined) return { entries, completeThrough: range.through };
    after = page.next;
  }
  // Objects of 350 KB, changed each second, fill these pages in three minutes: a watch that resumes then must not fail.
  if (readThrough > range.after) return { entries, completeThrough: readThrough };
  throw new StoreFault('too-large', `${LOG_PAGES_MAX} pages of a log without a change`, { retryable: false });
}

interface MergeBounds extends Required<Pick<Parameters<ChangeLog['readChanges']>[0], 'after' | 'limit' | 'accepts'>> {
  readonly version: number;
}

/** Step 3: the oldest `limit` accepted changes of all shards, up to the version that all logs are complete to. */
function mergeLogs(logs: readonly ShardLog[], { after, version, limit, accepts }: MergeBounds): ChangesOutcome {
  const complete = Math.min(version, ...logs.map((log) => log.completeThrough));
  const entries = logs
    .flatMap((log) => log.entries)
    .filter(({ resourceVersion }) => resourceVersion <= complete)
    .sort((one, other) => one.resourceVersion - other.resourceVersion);
  const changes: ObjectChange[] = [];
  for (const entry of entries.slice(0, limit)) {
    const change = entry.change();
    if (!accepts(change)) break;
    changes.push(change);
  }
  const through = changes.length < entries.length ? (changes.at(-1)?.resourceVersion ?? after) : complete;
  return { kind: 'changes', changes, through, more: through < version };
}

function headOf(shard: number, item: Item | undefined): Head {
  const head = readRow(HEAD, item ?? {});
  const { version: raisedTo = 0, committed = 0, logFrom = 0, missedAfter: after, missedBefore: before } = head;
  const missed = after === undefined || before === undefined ? undefined : { after, before };
  return { shard, raisedTo, committed, logFrom, missed };
}
