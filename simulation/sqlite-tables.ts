/** SQLite files for simulations: one in a directory of its own for each run or scenario, removed with it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore, type SqliteStore } from '../server/store/sqlite-store.ts';
import type { Clock } from '../shared/clock.ts';
import type { ItemStore } from '../shared/store/item-store.ts';
import type { MemoryItemStore } from '../shared/store/memory/item-store.ts';
import { recordedStore, StoresDisagree } from './recorded-store.ts';

/** Sweeps of one moment. Each deletes hundreds of items. */
const SWEEPS_MAX = 1_000;

export interface OpenedSqlite {
  readonly store: SqliteStore;
  /** @throws StoresDisagree if a cached item differs from its row */
  drop(): Promise<void>;
}

/** Without syncs and waits between commits: the machine of a simulation loses no power, and time is virtual. */
export function openSqlite(clock: Clock): OpenedSqlite {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-simulation-'));
  const file = join(directory, 'nodekeeper.db');
  const store = openSqliteStore({ file, clock, synchronous: 'normal', groupIntervalMsMax: 0 });
  return {
    store,
    async drop() {
      const wrong = store.wrongCacheEntries();
      await store.close();
      rmSync(directory, { recursive: true, force: true });
      if (wrong.length > 0) throw new StoresDisagree(`cached items that differ from their rows: ${wrong.join(', ')}`);
    },
  };
}

/** The tables of a run: a SQLite store with the record of its changes. */
export interface SqliteTables {
  readonly tables: MemoryItemStore;
  /** No request is under way, and what followed from the last one has run. */
  settled(): Promise<void>;
  /** Time to live, in both. */
  expire(nowSeconds: number): Promise<void>;
  end(): Promise<void>;
}

export function sqliteTables(clock: Clock): SqliteTables {
  const { store, drop } = openSqlite(clock);
  const { items, record } = recordedStore(store.items, store.items);
  let underWay = 0;
  const counted = async <T>(request: Promise<T>): Promise<T> => {
    underWay += 1;
    try {
      return await request;
    } finally {
      underWay -= 1;
    }
  };
  const requests: ItemStore = {
    get: (key, options) => counted(items.get(key, options)),
    getMany: (keys, options) => counted(items.getMany(keys, options)),
    query: (request) => counted(items.query(request)),
    scan: (request) => counted(items.scan(request)),
    write: (write, options) => counted(items.write(write, options)),
    transact: (writes) => counted(items.transact(writes)),
  };
  return {
    tables: { ...record, ...requests },
    async settled() {
      do await new Promise((resolve) => setImmediate(resolve));
      while (underWay > 0);
    },
    async expire(nowSeconds) {
      for (const table of ['health', 'objects', 'control'] as const) record.expire(table, nowSeconds);
      for (let sweeps = 0; sweeps < SWEEPS_MAX && (await store.sweepExpired()) > 0; sweeps += 1);
    },
    end: drop,
  };
}
