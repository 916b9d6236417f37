/**
 * A store with a memory store beside it, which receives the same requests in the same order. Their outcomes of writes
 * and their items at the end must be equal. The memory store reports the units that the requests would cost.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  type ConsumedUnits,
  type Item,
  type ItemPosition,
  type ItemStore,
  SCAN_SEGMENTS_MAX,
} from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';

export interface ShadowedStore extends ItemStore {
  /** What differed so far, and every item that differs now. */
  differences(): Promise<readonly string[]>;
}

export function shadowedStore(store: ItemStore, onConsumed: (units: ConsumedUnits) => void): ShadowedStore {
  const shadow = memoryItemStore({ onConsumed });
  const differences: string[] = [];
  const settled = async (request: Promise<unknown>): Promise<unknown> =>
    request.then(
      (outcome) => outcome,
      (fault: unknown) => String(fault),
    );
  const compared = async <T>(request: Promise<T>, expected: Promise<T>, what: unknown): Promise<T> => {
    const [one, other] = await Promise.all([settled(request), settled(expected)]);
    if (!isDeepStrictEqual(one, other)) differences.push(JSON.stringify({ what, one, other }));
    return request;
  };
  return {
    get: (key, options) => {
      void settled(shadow.get(key, options));
      return store.get(key, options);
    },
    getMany: (keys, options) => {
      void settled(shadow.getMany(keys, options));
      return store.getMany(keys, options);
    },
    query: (request) => {
      void settled(shadow.query(request));
      return store.query(request);
    },
    scan: (request) => {
      void settled(shadow.scan(request));
      return store.scan(request);
    },
    write: (write, options) => compared(store.write(write, options), shadow.write(write, options), write),
    transact: (writes) => compared(store.transact(writes), shadow.transact(writes), writes),
    async differences() {
      for (const table of ['health', 'objects', 'control'] as const) {
        const items = new Map((await allItems(store, table)).map((item) => [idOf(item), item]));
        const expected = new Map(shadow.items(table).map((item) => [idOf(item), item]));
        for (const id of new Set([...items.keys(), ...expected.keys()])) {
          if (!isDeepStrictEqual(items.get(id), expected.get(id))) differences.push(`${table} ${id}`);
        }
      }
      return differences;
    },
  };
}

const idOf = (item: Item): string => JSON.stringify([item['pk'], item['sk']]);

const PAGES_MAX = 10_000;

async function allItems(store: ItemStore, table: 'health' | 'objects' | 'control'): Promise<readonly Item[]> {
  const found: Item[] = [];
  for (let segment = 0; segment < SCAN_SEGMENTS_MAX; segment += 1) {
    let after: ItemPosition | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const request = { table, segment, segments: SCAN_SEGMENTS_MAX, consistent: true } as const;
      const { items, next } = await store.scan(after === undefined ? request : { ...request, after });
      found.push(...items);
      after = next;
      if (after === undefined) break;
    }
  }
  return found;
}
