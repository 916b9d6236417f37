/** What a lagging replica shows of single items, to a process that asks for them as eventually consistent. */
import type { ItemStore } from '../../shared/store/item-store.ts';
import type { RecentChanges } from '../recent-changes.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';

const SHARE = 0.9;
const STALE_MAX_MS = 3_000;

/** Heads of the change log are the only items that are read so. Each item of a read comes from a replica of its own. */
export const withStaleHeads = (
  items: ItemStore,
  { recent, time, plan }: { readonly recent: RecentChanges; readonly time: VirtualTime; readonly plan: FaultPlan },
): ItemStore => ({
  ...items,
  async getMany(keys, options) {
    const found = await items.getMany(keys, options);
    if (options.consistent || !plan.strikes('staleReads', SHARE)) return found;
    return found.map((item, index) => {
      const { table, pk, sk } = keys[index]!;
      const momentMs = time.nowMs() - plan.fraction('staleReads') * STALE_MAX_MS;
      const undone = recent.since(table, pk, momentMs).find(({ key }) => key.sk === sk);
      return undone === undefined ? item : undone.oldImage;
    });
  },
});
