/**
 * One process per file. An exclusive lock of the operating system on a file of no bytes beside the database, locked
 * through SQLite, which Node can do without a library. The lock ends with the process, however it ends, and the file
 * that stays behind says nothing. The process id is in a second file for the message alone.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { resultCode } from './sqlite-fault.ts';
import { StoreOpenError } from './store-open-error.ts';

/** SQLITE_BUSY: another process has the lock. */
const BUSY = 5;

export interface StoreLock {
  release(): void;
}

/** What is locked by a command that moves a database, or puts another one in its place, also while it is served. */
export const moveLockOf = (database: string): string => `${database}.move`;

/** @throws StoreOpenError `in-use`, `unreadable` */
export function lockStore(file: string): StoreLock {
  const pidFile = `${file}.pid`;
  const lock = openLock(`${file}.lock`);
  try {
    // Without a journal file: nothing is ever written.
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (cause) {
    lock.close();
    if (resultCode(cause) !== BUSY) throw cannotLock(file, cause);
    const pid = pidIn(pidFile);
    throw new StoreOpenError(
      'in-use',
      `${file} is in use by process ${pid ?? '(unknown)'}: stop it first, or name another file`,
      { cause, ...(pid === undefined ? {} : { pid }) },
    );
  }
  try {
    writeFileSync(pidFile, `${process.pid}\n`);
  } catch {
    // A full disk must not prevent a start. The next process then cannot name this one.
  }
  return {
    release() {
      try {
        rmSync(pidFile, { force: true });
      } catch {
        // On a read-only disk it stays, and says nothing.
      }
      lock.close();
    },
  };
}

function openLock(file: string): DatabaseSync {
  try {
    return new DatabaseSync(file, { timeout: 0 });
  } catch (cause) {
    throw cannotLock(file, cause);
  }
}

const cannotLock = (file: string, cause: unknown): StoreOpenError =>
  new StoreOpenError('unreadable', `${file} cannot be locked: ${(cause as Error).message}`, { cause });

function pidIn(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, 'utf8').trim());
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}
