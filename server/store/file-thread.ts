/** The thread of file-work.ts. Its connection syncs as SQLite does by itself, so no sync is on the event loop. */
import { renameSync, rmSync, statSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { CheckpointResult, FileCheck, FileWork, RowCounts, WorkAnswer, WorkRequest } from './file-work.ts';
import { decodeItem } from './item-encoding.ts';
import { CONNECTION_SETTINGS, createPrivately, syncDirectory, syncFile } from './open-database.ts';

/** The process locks the file for a group at a time; waiting longer is of no use. */
const BUSY_TIMEOUT_MS = 1_000;
const FINDINGS_MAX = 100;
/** Pages that are copied between two looks at the log: 4 MB. */
const STEP_PAGES = 1_000;
const ITEM_TABLES = ['health', 'objects', 'control'] as const;

const port = parentPort!;
const { file } = workerData as { readonly file: string };
const database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
// With NORMAL a checkpoint syncs both files, and a log that begins syncs its header.
database.exec(`${CONNECTION_SETTINGS} PRAGMA synchronous = NORMAL; PRAGMA cache_size = -1024;`);

port.on('message', async ({ id, work }: WorkRequest) => {
  let answer: WorkAnswer;
  try {
    answer = { id, result: await done(work) };
  } catch (error) {
    const { message, errcode } = error as Error & { readonly errcode?: number };
    answer = { id, failure: message, errcode };
  }
  port.postMessage(answer);
});

async function done(work: FileWork): Promise<unknown> {
  switch (work.kind) {
    case 'checkpoint':
      return checkpoint('PASSIVE');
    case 'begin-log':
      return beginLog();
    case 'truncate':
      return truncate();
    case 'backup':
      return backUp(work);
    case 'check':
      return check(database);
  }
}

function checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): CheckpointResult & { readonly isBusy: boolean } {
  const row = database.prepare(`PRAGMA wal_checkpoint(${mode})`).get() ?? {};
  return {
    isBusy: row['busy'] !== 0,
    logFrames: Number(row['log']),
    checkpointedFrames: Number(row['checkpointed']),
  };
}

/**
 * The frame that begins the log is written here: SQLite syncs the header of the log before it, and that sync would
 * otherwise be on the event loop.
 */
function beginLog(): CheckpointResult {
  const result = checkpoint('PASSIVE');
  if (result.logFrames === result.checkpointedFrames) database.exec('UPDATE log_begins SET count = count + 1');
  return result;
}

function truncate(): CheckpointResult {
  const result = checkpoint('TRUNCATE');
  if (result.isBusy) throw new Error('the log is read by another program');
  return result;
}

/** A copy of one moment, under its name only when it is complete, sound and durable. */
async function backUp({ to, logBytesMax }: FileWork & { kind: 'backup' }): Promise<RowCounts> {
  const unfinished = `${to}.new`;
  const removeUnfinished = (): void => {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${unfinished}${suffix}`, { force: true });
  };
  removeUnfinished();
  try {
    createPrivately(unfinished);
    let rows: RowCounts;
    // The copy is of the moment that the transaction reads, whatever is written meanwhile.
    database.exec('BEGIN');
    try {
      rows = countRows(database);
      const bytesMax = logBytes() + logBytesMax;
      const progress = (): void => {
        if (logBytes() > bytesMax) throw new Error('too much was written during the copy: choose a faster disk for it');
      };
      await backup(database, unfinished, { rate: STEP_PAGES, progress });
    } finally {
      database.exec('COMMIT');
    }
    requireSound(unfinished, rows);
    syncFile(unfinished);
    renameSync(unfinished, to);
    syncDirectory(to);
    return rows;
  } catch (error) {
    removeUnfinished();
    throw error;
  }
}

const logBytes = (): number => statSync(`${file}-wal`).size;

function requireSound(file: string, expected: RowCounts): void {
  const copy = new DatabaseSync(file);
  try {
    // One file without companions.
    copy.exec('PRAGMA journal_mode = DELETE');
    const { findings, rows } = check(copy);
    if (findings.length > 0) throw new Error(`the copy is damaged: ${findings[0]}`);
    if (JSON.stringify(rows) !== JSON.stringify(expected)) throw new Error('the copy has another number of rows');
  } finally {
    copy.close();
  }
}

function check(of: DatabaseSync): FileCheck {
  const findings = of
    .prepare(`PRAGMA integrity_check(${FINDINGS_MAX})`)
    .all()
    .flatMap((row) => (row['integrity_check'] === 'ok' ? [] : [String(row['integrity_check'])]));
  for (const table of ITEM_TABLES) {
    for (const { pk, sk, item } of of.prepare(`SELECT pk, sk, item FROM ${table}`).iterate()) {
      try {
        decodeItem(item, String(pk), String(sk));
      } catch (error) {
        if (findings.length < FINDINGS_MAX) findings.push(`${table}: ${(error as Error).message}`);
      }
    }
  }
  const layoutVersion = Number(of.prepare('PRAGMA user_version').get()?.['user_version']);
  return { findings, rows: countRows(of), layoutVersion };
}

function countRows(of: DatabaseSync): RowCounts {
  const count = (table: string): number => Number(of.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n']);
  return {
    health: count('health'),
    objects: count('objects'),
    control: count('control'),
    pending: count('pending'),
  };
}
