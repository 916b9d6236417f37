/** What a lagging replica shows of single items, to a process that asks for them as eventually consistent. */
import type { Item, ItemStore } from '../../shared/ports/item-store.ts';
import type { TimedChange } from '../recent-changes.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';

const SHARE = 0.9;
const STALE_MAX_MS = 3_000;
/** Heads of the change log: the only items that are read so. */
const PREFIX = 'h#';

export interface RecentHeads {
  learn(changes: readonly TimedChange[]): void;
  /** As it was; `now` when nothing has changed since. */
  asOf(pk: string, momentMs: number, now: Item | undefined): Item | undefined;
}

export function recentHeads(): RecentHeads {
  const byPartition = new Map<string, TimedChange[]>();
  return {
    learn(changes) {
      for (const change of changes) {
        const { table, pk } = change.key;
        if (table !== 'objects' || !pk.startsWith(PREFIX)) continue;
        const before = (byPartition.get(pk) ?? []).filter(({ atMs }) => atMs > change.atMs - STALE_MAX_MS);
        byPartition.set(pk, [...before, change]);
      }
    },
    asOf(pk, momentMs, now) {
      const undone = byPartition.get(pk)?.find(({ atMs }) => atMs > momentMs);
      return undone === undefined ? now : undone.oldImage;
    },
  };
}

/** Each item of a read comes from a replica of its own. */
export const withStaleHeads = (
  items: ItemStore,
  { heads, time, plan }: { readonly heads: RecentHeads; readonly time: VirtualTime; readonly plan: FaultPlan },
): ItemStore => ({
  ...items,
  async getMany(keys, options) {
    const found = await items.getMany(keys, options);
    if (options.consistent || !plan.strikes('staleReads', SHARE)) return found;
    return found.map((item, index) => {
      const momentMs = time.nowMs() - plan.fraction('staleReads') * STALE_MAX_MS;
      return heads.asOf(keys[index]!.pk, momentMs, item);
    });
  },
});
