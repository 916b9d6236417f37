/** A store with late reads: those of many items that are eventually consistent return the state when it was frozen. */
import type { Item, ItemKey, ItemStore } from '../../shared/store/item-store.ts';
import type { MemoryItemStore } from '../../shared/store/memory/item-store.ts';

export function lateReads(tables: MemoryItemStore): { readonly items: ItemStore; freeze(): void } {
  let frozen: ReadonlyMap<string, Item> | undefined;
  const nameOf = (pk: unknown, sk: unknown): string => `${pk} ${sk}`;
  return {
    items: {
      ...tables,
      async getMany(keys: readonly ItemKey[], { consistent }) {
        if (consistent || frozen === undefined) return tables.getMany(keys, { consistent });
        return keys.map(({ pk, sk }) => frozen?.get(nameOf(pk, sk)));
      },
    },
    freeze() {
      frozen = new Map(tables.items('objects').map((item) => [nameOf(item['pk'], item['sk']), item]));
    },
  };
}
