/**
 * Opens the file of a store, or creates it. What is no store of this layout is refused with what to do: a cluster never
 * starts empty because its file could not be read.
 */
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isDamage } from './sqlite-fault.ts';
import { StoreOpenError } from './store-open-error.ts';

/** `NKst`: identifies the file of a store (https://www.sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x4e_4b_73_74;
/** Raised by every change of the tables below, with a migration. */
export const LAYOUT_VERSION = 1;

/** The write-ahead log keeps this size between checkpoints: blocks that exist are cheaper to sync than new ones. */
const WAL_KEPT_BYTES = 16 * 1_024 * 1_024;
const PAGE_CACHE_KIBIBYTES = 16_384;
/** A file up to this size is checked when it is opened; 64 MB need about 0.1 s. */
const CHECKED_AT_OPEN_BYTES_MAX = 64 * 1_024 * 1_024;
/** Other connections lock the file for moments only, and this one waits on the event loop. */
const BUSY_TIMEOUT_MS = 250;

/**
 * `hash` is the hash of `pk`; a segment of a scan is a range of it. Rows have a rowid: an update of an item of 2 KB
 * then needs half of the time of a table without.
 */
const tableSql = (table: string): string => `
  CREATE TABLE ${table} (
    hash INTEGER NOT NULL, pk TEXT NOT NULL, sk TEXT NOT NULL, ttl ANY, item ANY NOT NULL,
    PRIMARY KEY (hash, pk, sk)
  ) STRICT;
  CREATE INDEX ${table}_ttl ON ${table} (ttl) WHERE ttl IS NOT NULL;`;

const SCHEMA = `
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${LAYOUT_VERSION};
  ${['health', 'objects', 'control'].map(tableSql).join('')}
  CREATE TABLE pending (
    id INTEGER PRIMARY KEY, consumer TEXT NOT NULL,
    tbl TEXT NOT NULL, pk TEXT NOT NULL, sk TEXT NOT NULL, cause TEXT NOT NULL, old ANY, new ANY
  ) STRICT;
  CREATE INDEX pending_consumer ON pending (consumer, id);
  CREATE TABLE log_begins (id INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;
  INSERT INTO log_begins VALUES (1, 0);`;

/** Settings of every connection that may write. The F_FULLFSYNC of macOS has no effect elsewhere. */
export const CONNECTION_SETTINGS = `
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA journal_size_limit = ${WAL_KEPT_BYTES};
  PRAGMA fullfsync = ON;
  PRAGMA checkpoint_fullfsync = ON;
  PRAGMA trusted_schema = OFF;
  PRAGMA cell_size_check = ON;`;

export interface OpenedDatabase {
  readonly database: DatabaseSync;
  /** Descriptor of the write-ahead log, for fdatasync. It stays the same file while a connection is open. */
  readonly walDescriptor: number;
}

/** The caller has the lock of the file. @throws StoreOpenError */
export function openDatabase(file: string): OpenedDatabase {
  if (!existsSync(file)) create(file);
  const database = connect(file);
  try {
    requireStore(database, file);
    // A backup is a file without a log.
    database.exec(
      `PRAGMA journal_mode = WAL; ${CONNECTION_SETTINGS} PRAGMA synchronous = NORMAL; PRAGMA cache_size = -${PAGE_CACHE_KIBIBYTES};`,
    );
    // A read opens the log.
    database.prepare('SELECT count FROM log_begins').get();
    const walDescriptor = openSync(`${file}-wal`, 'r');
    makeDurable(database, walDescriptor, file);
    return { database, walDescriptor };
  } catch (cause) {
    database.close();
    if (cause instanceof StoreOpenError) throw cause;
    if (isDamage(cause)) throw damaged(file, (cause as Error).message, cause);
    throw unreadable(file, cause);
  }
}

function connect(file: string): DatabaseSync {
  try {
    return new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

/**
 * What a killed process committed without a sync may be in memory only. Everything that is read from here on must be
 * durable, so the log is synced first. After it the checkpoint moves the log into the file, and a first frame begins
 * the log again, with the sync of its header that would be on the event loop later. Both may fail on a full disk.
 */
function makeDurable(database: DatabaseSync, walDescriptor: number, file: string): void {
  fdatasyncSync(walDescriptor);
  syncDirectory(file);
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE); UPDATE log_begins SET count = count + 1');
    fdatasyncSync(walDescriptor);
  } catch (error) {
    if (isDamage(error)) throw error;
  }
}

/** In a second file that is renamed when it is complete: a file with the final name is never half a store. */
function create(file: string): void {
  const directory = dirname(resolve(file));
  if (!existsSync(directory)) {
    throw new StoreOpenError(
      'no-directory',
      `the directory ${directory} does not exist: create it, or name another file`,
    );
  }
  if (existsSync(`${file}-wal`) && statSync(`${file}-wal`).size > 0) {
    throw damaged(file, 'the file is missing, but its write-ahead log exists');
  }
  const unfinished = `${file}.new`;
  try {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${unfinished}${suffix}`, { force: true });
    createPrivately(unfinished);
    const database = new DatabaseSync(unfinished);
    try {
      database.exec(`PRAGMA synchronous = FULL; BEGIN; ${SCHEMA} COMMIT; PRAGMA journal_mode = WAL`);
    } finally {
      // The last connection moves the log into the file and removes it.
      database.close();
    }
    syncFile(unfinished);
    renameSync(unfinished, file);
    syncDirectory(file);
  } catch (cause) {
    throw new StoreOpenError('unreadable', `${file} cannot be created: ${(cause as Error).message}`, { cause });
  }
}

/** Tokens and keys are in it. The files that SQLite adds have the mode of the database file. */
export const createPrivately = (file: string): void => writeFileSync(file, '', { mode: 0o600, flag: 'wx' });

export function syncFile(file: string): void {
  const descriptor = openSync(file, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A new name is durable when its directory is. */
export const syncDirectory = (file: string): void => syncFile(dirname(resolve(file)));

/** @throws StoreOpenError, and errors of SQLite for a file that is no database */
function requireStore(database: DatabaseSync, file: string): void {
  const number = (pragma: string): number => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  if (statSync(file).size === 0) throw damaged(file, 'the file is empty');
  const applicationId = number('application_id');
  const version = number('user_version');
  if (applicationId !== APPLICATION_ID) {
    throw new StoreOpenError('foreign', `${file} is a database of another program: name another file`);
  }
  if (version > LAYOUT_VERSION) {
    throw new StoreOpenError(
      'newer-layout',
      `${file} has layout ${version}, and this release knows layout ${LAYOUT_VERSION}: start a newer release`,
    );
  }
  if (version !== LAYOUT_VERSION) throw damaged(file, `its layout is ${version}`);
  if (statSync(file).size > CHECKED_AT_OPEN_BYTES_MAX) return;
  const [finding] = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {});
  if (finding !== 'ok') throw damaged(file, String(finding));
}

/** Also a disk without 32 KB for the index of the log. */
const unreadable = (file: string, cause: unknown): StoreOpenError =>
  new StoreOpenError(
    'unreadable',
    `${file} cannot be opened (${(cause as Error).message}): check its permissions, the disk and the room on it`,
    { cause },
  );

const damaged = (file: string, why: string, cause?: unknown): StoreOpenError =>
  new StoreOpenError(
    'damaged',
    `${file} is damaged (${why}). It is not changed. Keep a copy, then put a backup in its place; ` +
      'to begin with an empty cluster instead, move it and its -wal file away',
    { cause },
  );
