import { StartError } from '../../shared/host/start-error.ts';
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions, StoreOpenError } from './sqlite-store.ts';

/** @throws StartError */
export function openStore(options: SqliteStoreOptions): SqliteStore {
  try {
    return openSqliteStore(options);
  } catch (cause) {
    if (!(cause instanceof StoreOpenError)) throw cause;
    throw new StartError(cause.message, { cause });
  }
}
