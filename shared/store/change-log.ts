/**
 * What a watch reads: the changes of a resource after a resourceVersion, in order, each once, none lost.
 *
 * The difficulty: a commit takes its version before it is in the table, so a lower version may appear after a higher one
 * was read. A reader that simply remembers the highest version it saw would step over the late one for ever.
 *
 * Every shard of a resource has a head item with `rv`. A commit with version v into shard s writes, in one transaction,
 * its objects, its log entries, and head(s).rv := v under the condition head(s).rv < v. A reader that wants to deliver
 * everything up to R
 *
 *   1. reads all heads, strongly consistent, and takes R = the highest rv among them;
 *   2. raises every lower head to R, by an update under the condition head(s).rv < R;
 *   3. reads each shard's log strictly above its cursor up to R, strongly consistent, and merges by version.
 *
 * Why nothing is lost: after step 2 every head is at least R (either it was, or our update made it so, or our update was
 * refused because it already was), and heads never fall. A commit with v <= R into any shard that is not done by then
 * will find head(s).rv >= R >= v and be refused; its writer takes a version above R and is found by a later read. A
 * commit that is done by then has its log entries in the table, because they were written with the head, and step 3
 * reads them. So the log up to R is complete and closed when step 3 begins. Versions of a resource are distinct (see
 * object-store.ts), so a cursor at any of them, or at R, divides the changes without a tie.
 *
 * A list is the same: R is fixed and raised first, the objects are read after; they contain every change up to R, perhaps
 * some beyond, which a watch from R tells again (a client applies a state, so twice is once).
 *
 * Quiet shards cost nothing: `c` on the head is the highest version committed there (raising does not touch it), and a
 * log is read only where c is above the cursor. A poll begins with an eventually consistent look at the heads; it can
 * only be late, and late news is next poll's news.
 *
 * Expiry: log entries carry a TTL of LOG_RETENTION_SECONDS and a margin after their own version, so a cursor younger than
 * the retention has everything above it still there. An older cursor is expired only if something was committed
 * after it; and so that a quiet cluster does not get there, lists and held watches move a version older than
 * FRESHEN_AFTER_SECONDS up to the present, by the same raising.
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

/** A resourceVersion handed out is never older than this when it is handed out. Seconds. */
const FRESHEN_AFTER_SECONDS = 600;
/** Pages of one shard's log in one read, at 1 MB. */
const LOG_PAGES_MAX = 64;

export type ChangesOutcome =
  | {
      readonly kind: 'changes';
      /** By resourceVersion, oldest first. */
      readonly changes: readonly ObjectChange[];
      /** Everything up to here has been told: the cursor of the next read, and the version of a bookmark. */
      readonly through: number;
    }
  /** Changes after the cursor may be gone: 410 Expired, list again. */
  | { readonly kind: 'expired' };

export interface ChangeLog {
  /**
   * Changes after the version `after`, `limit` at most. `eager: false` begins with a cheap look that may be late by
   * DynamoDB's usual lag; true asks at once for all that is committed.
   */
  readChanges(request: {
    readonly resource: string;
    readonly after: number;
    readonly limit: number;
    readonly eager?: boolean;
  }): Promise<ChangesOutcome>;
  /** The version a list answers, asked before the list is read: a watch from here misses nothing of what came after. */
  currentVersion(resource: string): Promise<number>;
}

interface Head {
  readonly shard: number;
  /** Nothing at or below this can be committed any more. */
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

  /** Step 2. Answers the head as it stood at the raise or after: its `committed` covers every commit up to `version`. */
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
