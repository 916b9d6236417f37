/** A SQLite store in a directory of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from '../../server/store/sqlite-store.ts';

export interface TestSqliteStore {
  readonly file: string;
  readonly store: SqliteStore;
  /** Opens the same file again; the former store must be closed. */
  reopen(options?: Partial<SqliteStoreOptions>): SqliteStore;
  /** Closes what is open and removes the directory. */
  remove(): Promise<void>;
}

export function sqliteStoreForTest(options: Partial<SqliteStoreOptions> = {}): TestSqliteStore {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-store-'));
  const file = join(directory, 'nodekeeper.db');
  const open = (more: Partial<SqliteStoreOptions>): SqliteStore =>
    openSqliteStore({ file, clock: { nowMs: Date.now }, synchronous: 'full', ...options, ...more });
  const store = open({});
  let last = store;
  return {
    file,
    store,
    reopen(more = {}) {
      last = open(more);
      return last;
    },
    async remove() {
      await last.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
