/** node-monitor as if rows of the table `health` had other attributes: bugs that the laws must find. */
import type { Condition, Item, ItemStore, TransactWrite } from '../../shared/store/item-store.ts';

/** It reads the rows changed, and writes without a condition on the attribute. */
export function rowsChanged(items: ItemStore, attribute: string, change: (row: Item) => Item): ItemStore {
  const isOther = (condition: Condition): boolean => !('attribute' in condition) || condition.attribute !== attribute;
  const unconditioned = (write: TransactWrite): TransactWrite =>
    write.kind === 'update' && write.key.table === 'health' && write.when?.kind === 'all'
      ? { ...write, when: { ...write.when, of: write.when.of.filter(isOther) } }
      : write;
  return {
    ...items,
    transact: (writes) => items.transact(writes.map(unconditioned)),
    async scan(request) {
      const page = await items.scan(request);
      return { ...page, items: page.items.map(change) };
    },
  };
}

/** It knows nothing of the attribute. */
export const rowsWithout = (items: ItemStore, attribute: string): ItemStore =>
  rowsChanged(items, attribute, ({ [attribute]: _, ...row }) => row as Item);
