/**
 * One process per file. An exclusive lock of the operating system on a file of no bytes beside the database, locked
 * through SQLite, which Node can do without a library. The lock ends with the process, however it ends, and the file
 * that stays behind says nothing. The process id is in a second file for the message alone.
 */
import { closeSync, constants, fchownSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
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
  const lockFile = `${file}.lock`;
  createLock(lockFile);
  const lock = openLock(lockFile);
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
    const descriptor = openForOwner(pidFile, constants.O_CREAT | constants.O_TRUNC);
    try {
      writeSync(descriptor, `${process.pid}\n`);
    } finally {
      closeSync(descriptor);
    }
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

function createLock(file: string): void {
  try {
    closeSync(openForOwner(file, constants.O_CREAT | constants.O_EXCL));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cannotLock(file, cause);
  }
}

/**
 * For the owner of the directory alone. What a command of root creates in the directory of a service must not keep that
 * service from its data. Never through a link: the owner may have placed one.
 */
function openForOwner(file: string, flags: number): number {
  const descriptor = openSync(file, constants.O_WRONLY | constants.O_NOFOLLOW | flags, 0o600);
  if (process.getuid?.() === 0) {
    const { uid, gid } = statSync(dirname(file));
    fchownSync(descriptor, uid, gid);
  }
  return descriptor;
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
