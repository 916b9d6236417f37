/**
 * Changes of a resource since the last read, shard by shard, for a process that keeps a copy of all objects.
 *
 * change-log.ts merges the shards into one order, and raises their heads for that. A copy needs no such order. Within a
 * shard every commit has a version above the head, and writes the head in its transaction. So a version up to `c` of a
 * head was committed before the head was read, and its log entry exists. A cursor per shard therefore misses nothing,
 * and the read writes nothing.
 */
import type { Clock } from '../clock.ts';
import type { Item, ItemKey, ItemStore } from './item-store.ts';
import { ALONE, headPartition, LOG_RETENTION_SECONDS, logPartition, resourceVersionKey } from './layout.ts';
import { HEAD, logEntries, type ObjectChange } from './object-record.ts';

/**
 * Pages of one shard's log in one read, at 1 MB. All of them are in memory at once, and a list costs less than more.
 */
const PAGES_MAX = 4;

export interface ShardCursors {
  /** By shard: every change up to this version was read. */
  readonly versions: readonly number[];
  /** When they were read. Epoch milliseconds. Log entries of that time expire. */
  readonly readAtMs: number;
}

export type ShardChanges =
  | { readonly kind: 'changes'; readonly changes: readonly ObjectChange[]; readonly cursors: ShardCursors }
  /** Changes since then may have expired, or are more than one read may return: list again. */
  | { readonly kind: 'expired' };

export interface ShardChangesOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly shardsOf: (resource: string) => number;
}

/**
 * The cursors of a list that is read afterwards. One read unit per shard; half of one if a late answer suffices
 * (`consistent` false).
 */
export async function readShardCursors(
  { items, clock, shardsOf }: ShardChangesOptions,
  resource: string,
  { consistent = true } = {},
): Promise<ShardCursors> {
  const readAtMs = clock.nowMs();
  const keys = Array.from(
    { length: shardsOf(resource) },
    (_, shard): ItemKey => ({ table: 'objects', pk: headPartition(resource, shard), sk: ALONE }),
  );
  const heads = await items.getMany(keys, { consistent });
  return { versions: heads.map((item) => (item && HEAD.committed.of(item)) ?? 0), readAtMs };
}

/** All changes that were committed before the call, and maybe later ones. By shard, oldest first. */
export async function readShardChanges(
  options: ShardChangesOptions,
  resource: string,
  after: ShardCursors,
): Promise<ShardChanges> {
  const cursors = await readShardCursors(options, resource);
  const changed = cursors.versions.flatMap((committed, shard) =>
    committed > (after.versions[shard] ?? 0) ? [shard] : [],
  );
  if (changed.length > 0 && after.readAtMs < options.clock.nowMs() - LOG_RETENTION_SECONDS * 1_000) {
    return { kind: 'expired' };
  }
  const logs = await Promise.all(
    changed.map((shard) =>
      readLog(options.items, { resource, shard, after: after.versions[shard] ?? 0, through: cursors.versions[shard]! }),
    ),
  );
  // A failure of a whole fleet has such an effect. A later read would find even more, so only a list helps.
  if (!logs.every((log) => log !== undefined)) return { kind: 'expired' };
  return {
    kind: 'changes',
    changes: logs.flat().flatMap((item) => logEntries(resource, item).map((entry) => entry.change())),
    cursors,
  };
}

/** @returns undefined when the log has more pages than one read may return */
async function readLog(
  items: ItemStore,
  range: { readonly resource: string; readonly shard: number; readonly after: number; readonly through: number },
): Promise<readonly Item[] | undefined> {
  const entries: Item[] = [];
  let after = resourceVersionKey(range.after);
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await items.query({
      table: 'objects',
      pk: logPartition(range.resource, range.shard),
      consistent: true,
      after,
      through: resourceVersionKey(range.through),
    });
    entries.push(...page.items);
    if (page.next === undefined) return entries;
    after = page.next;
  }
  return undefined;
}
