/**
 * Names the history of a store. A backup that is put in its place has an older state, and continues from there:
 * versions of before are issued for other objects, or never. Whoever keeps a copy of the store then has to begin anew.
 *
 *   control  pk `history` sk `-`   id
 *
 * `nodekeeper restore` writes another id. A store that was never restored has no row.
 */

import type { ItemKey, ItemReader, ItemStore } from './item-store.ts';
import { ALONE, changeOf, readRow, text } from './layout.ts';

const KEY: ItemKey = { table: 'control', pk: 'history', sk: ALONE };
const HISTORY = { id: text('i') };

/** '': it was never restored. @throws StoreFault */
export async function readHistory(items: ItemReader): Promise<string> {
  return readRow(HISTORY, (await items.get(KEY, { consistent: true })) ?? {}).id ?? '';
}

/** @throws StoreFault */
export async function writeHistory(items: Pick<ItemStore, 'write'>, id: string): Promise<void> {
  await items.write({ kind: 'put', key: KEY, item: changeOf(HISTORY, { id }).set });
}
