/**
 * An item store together with the record of its changes, which stands for the tables' streams, the watch caches of
 * machines and the timeline.
 *
 * The memory store records by itself. The embedded engine would, too, but each write to a table with a stream costs it
 * a look at all records so far; here every write that the engine accepted is done again in a memory store at its side.
 * The two must agree on every outcome, or the simulation ends: two adapters of one contract, compared on a whole
 * fleet's life.
 */

import type { ItemKey, ItemStore, ItemUpdater } from '../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../shared/store/memory/item-store.ts';

export interface RecordedStore {
  readonly items: ItemStore;
  /** What the heartbeat writes through. */
  readonly beats: ItemUpdater;
  /** The same items, with the changes of every table. */
  readonly record: MemoryItemStore;
}

const ALL_TABLES = ['health', 'objects', 'control'] as const;

export class StoresDisagree extends Error {
  override readonly name = 'StoresDisagree';
}

export function recordedMemoryStore(): RecordedStore {
  const record = memoryItemStore({ changesOf: ALL_TABLES });
  return { items: record, beats: record, record };
}

export function recordedStore(store: ItemStore, updater: ItemUpdater): RecordedStore {
  const record = memoryItemStore({ changesOf: ALL_TABLES });
  const inOrder = writesInOrder();

  const same = <T extends { readonly kind: string }>(outcome: T, recorded: T, what: () => string): T => {
    if (outcome.kind === recorded.kind) return outcome;
    throw new StoresDisagree(`${what()}: the store says ${outcome.kind}, its record ${recorded.kind}`);
  };
  const writing =
    (through: { write: ItemStore['write'] }): ItemStore['write'] =>
    (write, wanted) =>
      inOrder([write.key], async () => {
        const outcome = await through.write(write, wanted);
        return same(outcome, await record.write(write), () => JSON.stringify(write));
      });

  return {
    record,
    beats: { write: writing(updater as { write: ItemStore['write'] }) },
    items: {
      get: (key, options) => store.get(key, options),
      getMany: (keys, options) => store.getMany(keys, options),
      query: (request) => store.query(request),
      scan: (request) => store.scan(request),
      write: writing(store),
      transact: (writes) =>
        inOrder(
          writes.map(({ key }) => key),
          async () => {
            const outcome = await store.transact(writes);
            if (outcome.kind === 'contended') return outcome;
            return same(outcome, await record.transact(writes), () => JSON.stringify(writes));
          },
        ),
    },
  };
}

/**
 * Writes that touch a common item go out one after the other: the order in which the store accepts them is known. Each
 * waits for the writes before it on any of its items; as the wait is arranged in one go, no two wait for each other.
 */
function writesInOrder(): <T>(keys: readonly ItemKey[], write: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return async (keys, write) => {
    const ids = keys.map(({ table, pk, sk }) => `${table}\n${pk}\n${sk}`);
    const before = ids.flatMap((id) => last.get(id) ?? []);
    const written = (before.length === 0 ? write() : Promise.all(before).then(write)) as ReturnType<typeof write>;
    const settled = written.then(
      () => undefined,
      () => undefined,
    );
    for (const id of ids) last.set(id, settled);
    try {
      return await written;
    } finally {
      for (const id of ids) if (last.get(id) === settled) last.delete(id);
    }
  };
}
