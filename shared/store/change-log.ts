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
 * So the log up to R is complete when step 3 begins. Versions of a resource are distinct (see object-store.ts), so a
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
import type { Clock } from '../ports/clock.ts';
import { type Item, type ItemKey, type ItemStore, StoreFault } from '../ports/item-store.ts';
import { any, lacks } from './conditions.ts';
import {
  ALONE,
  headPartition,
  LOG_RETENTION_SECONDS,
  logPartition,
  RESOURCE_VERSIONS_PER_MS,
  resourceVersionKey,
} from './layout.ts';
import { changeOf, type ObjectChange } from './object-record.ts';

/** A returned resourceVersion is never older than this. Seconds. */
const FRESHEN_AFTER_SECONDS = 600;
/** Pages of one shard's log in one read, at 1 MB. */
const LOG_PAGES_MAX = 64;

export type ChangesOutcome =
  | {
      readonly kind: 'changes';
      /** By resourceVersion, oldest first. */
      readonly changes: readonly ObjectChange[];
      /** All changes up to here have been delivered: the cursor of the next read, and the version of a bookmark. */
      readonly through: number;
    }
  /** Changes after the cursor may have expired: 410 Expired, list again. */
  | { readonly kind: 'expired' };

export interface ChangeLog {
  /**
   * At most `limit` changes after the version `after`. `eager: false` starts with an eventually consistent read, which
   * costs less and may be late; true reads everything that is committed.
   */
  readChanges(request: {
    readonly resource: string;
    readonly after: number;
    readonly limit: number;
    readonly eager?: boolean;
  }): Promise<ChangesOutcome>;
  /** The version of a list, read before the list: a watch from here delivers every later change. */
  currentVersion(resource: string): Promise<number>;
}

interface Head {
  readonly shard: number;
  /** No version at or below this can be committed any more. */
  readonly raisedTo: number;
  /** The highest version committed. */
  readonly committed: number;
}

export function changeLog(options: {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly shardsOf: (resource: string) => number;
}): ChangeLog {
  const { items, clock, shardsOf } = options;
  const headKey = (resource: string, shard: number): ItemKey => ({
    table: 'objects',
    pk: headPartition(resource, shard),
    sk: ALONE,
  });

  async function readHeads(resource: string, consistent: boolean): Promise<Head[]> {
    const keys = Array.from({ length: shardsOf(resource) }, (_, shard) => headKey(resource, shard));
    return (await items.getMany(keys, { consistent })).map((item, shard) => headOf(shard, item));
  }

  /** Step 2. Returns the head at the raise or later: its `committed` includes every commit up to `version`. */
  async function raise(resource: string, head: Head, version: number): Promise<Head> {
    if (head.raisedTo >= version) return head;
    const outcome = await items.write(
      {
        kind: 'update',
        key: headKey(resource, head.shard),
        set: { rv: version },
        when: any(lacks('rv'), { kind: 'compare', attribute: 'rv', op: '<', value: version }),
      },
      { returnItem: true },
    );
    return headOf(head.shard, outcome.kind === 'written' ? outcome.item : outcome.current);
  }

  /** Steps 1 and 2. */
  async function close(resource: string): Promise<{ version: number; heads: Head[] }> {
    const heads = await readHeads(resource, true);
    const nowVersion = clock.nowMs() * RESOURCE_VERSIONS_PER_MS;
    const highest = Math.max(...heads.map((head) => head.raisedTo));
    const stale = highest < nowVersion - FRESHEN_AFTER_SECONDS * 1_000 * RESOURCE_VERSIONS_PER_MS;
    const version = stale ? nowVersion : highest;
    return { version, heads: await Promise.all(heads.map((head) => raise(resource, head, version))) };
  }

  /** Step 3 for one shard: up to `limit` entries, and how far they are complete. */
  async function readLog(
    resource: string,
    shard: number,
    range: { readonly after: number; readonly through: number; readonly limit: number },
  ): Promise<{ entries: Item[]; completeThrough: number }> {
    const entries: Item[] = [];
    let after = resourceVersionKey(range.after);
    for (let pages = 0; pages < LOG_PAGES_MAX; pages += 1) {
      const page = await items.query({
        table: 'objects',
        pk: logPartition(resource, shard),
        consistent: true,
        after,
        through: resourceVersionKey(range.through),
        limit: range.limit - entries.length,
      });
      entries.push(...page.items);
      if (page.next === undefined) return { entries, completeThrough: range.through };
      after = page.next;
      if (entries.length >= range.limit) return { entries, completeThrough: Number(after) };
    }
    throw new StoreFault('too-large', 'more pages of one log than one read takes', { retryable: false });
  }

  return {
    async readChanges({ resource, after, limit, eager = false }) {
      if (limit < 1) throw new RangeError('a read takes at least one change');
      const oldest = (clock.nowMs() - FRESHEN_AFTER_SECONDS * 1_000) * RESOURCE_VERSIONS_PER_MS;
      if (!eager && after >= oldest) {
        const heads = await readHeads(resource, false);
        if (heads.every((head) => head.committed <= after)) return { kind: 'changes', changes: [], through: after };
      }
      const { version, heads } = await close(resource);
      const news = heads.filter((head) => head.committed > after);
      if (news.length === 0) return { kind: 'changes', changes: [], through: Math.max(after, version) };
      const kept = (clock.nowMs() - LOG_RETENTION_SECONDS * 1_000) * RESOURCE_VERSIONS_PER_MS;
      if (after < kept) return { kind: 'expired' };
      const logs = await Promise.all(
        news.map((head) => readLog(resource, head.shard, { after, through: version, limit })),
      );
      const complete = Math.min(version, ...logs.map((log) => log.completeThrough));
      const entries = logs
        .flatMap((log) => log.entries)
        .filter((entry) => (entry['rv'] as number) <= complete)
        .sort((one, other) => (one['rv'] as number) - (other['rv'] as number));
      const told = entries.slice(0, limit);
      return {
        kind: 'changes',
        changes: told.map((entry) => changeOf(resource, entry)),
        through: told.length < entries.length ? (told.at(-1)!['rv'] as number) : complete,
      };
    },

    async currentVersion(resource) {
      return (await close(resource)).version;
    },
  };
}

function headOf(shard: number, item: Item | undefined): Head {
  return {
    shard,
    raisedTo: (item?.['rv'] as number | undefined) ?? 0,
    committed: (item?.['c'] as number | undefined) ?? 0,
  };
}
