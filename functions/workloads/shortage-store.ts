/**
 * Since when workloads lack pods: `control` pk `workload-shortages` sk `-`, attribute m by uid. Written when it
 * changes.
 */
import type { ItemKey, ItemStore } from '../../shared/store/item-store.ts';
import { ALONE } from '../../shared/store/layout.ts';
import type { Shortages } from './shortage.rule.ts';

const KEY: ItemKey = { table: 'control', pk: 'workload-shortages', sk: ALONE };

export async function readShortages(items: Pick<ItemStore, 'get'>): Promise<Shortages> {
  const row = await items.get(KEY, { consistent: true });
  return typeof row?.['m'] === 'string' ? (JSON.parse(row['m']) as Shortages) : {};
}

export async function writeShortages(items: Pick<ItemStore, 'write'>, shortages: Shortages): Promise<void> {
  await items.write({ kind: 'put', key: KEY, item: { m: JSON.stringify(shortages) } });
}
