/**
 * The database file of a data directory, before the engine opens it. The engine makes a new database of a missing or
 * empty file, silently. Beside tokens and an authority that machines already use, that is a lost cluster which looks
 * like a working one. So the file is made here, marked as ours, and the engine never gets another one.
 */
import { chmodSync, closeSync, existsSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { DatabaseUse } from '../../shared/host/data-directory.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { PRIVATE_FILE } from '../../shared/host/write-file.ts';

/** SQLite's application id of our files: "NdKp". */
const APPLICATION_ID = 0x4e_64_4b_70;
/** Source: SQLite, "Database File Format", section 1.3. */
const HEADER_TEXT = 'SQLite format 3\0';
const APPLICATION_ID_OFFSET = 68;
const HEADER_BYTES = 100;

/**
 * @param file need not exist when the cluster is new
 * @param knownBy a file that only a cluster with a database has; undefined for a new one
 * @throws StartError that names the file, what was expected, and what to do
 */
function requireDatabaseFile(file: string, knownBy: string | undefined): void {
  if (!existsSync(file)) {
    if (knownBy === undefined) return;
    throw refusal(file, `it does not exist, although ${knownBy} of its cluster does`);
  }
  const fault = faultOf(file);
  if (fault !== undefined) throw refusal(file, fault);
}

export const ENGINE_DATABASE: DatabaseUse = { name: 'nodekeeper.sqlite', require: requireDatabaseFile };
/** The engine that somebody else runs has the data. */
export const NO_DATABASE: DatabaseUse = { ...ENGINE_DATABASE, require: () => {} };

/** Makes the file of a new cluster. */
export function makeDatabaseFile(file: string): void {
  if (existsSync(file)) return;
  const temporary = `${file}.new`;
  rmSync(temporary, { force: true });
  const database = new DatabaseSync(temporary);
  try {
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  } finally {
    database.close();
  }
  // SQLite creates the files beside it with the same permissions.
  chmodSync(temporary, PRIVATE_FILE);
  renameSync(temporary, file);
}

function faultOf(file: string): string | undefined {
  if (!statSync(file).isFile()) return 'it is not a file';
  const header = Buffer.alloc(HEADER_BYTES);
  const opened = openSync(file, 'r');
  try {
    const bytes = readSync(opened, header);
    if (bytes < HEADER_BYTES) return `it has only ${bytes} bytes`;
  } finally {
    closeSync(opened);
  }
  if (header.toString('latin1', 0, HEADER_TEXT.length) !== HEADER_TEXT) return 'it is not an SQLite database';
  const id = header.readUInt32BE(APPLICATION_ID_OFFSET);
  return id === APPLICATION_ID ? undefined : `it is the SQLite database of another program (application id ${id})`;
}

const refusal = (file: string, fault: string): StartError =>
  new StartError(
    `${file} is not the database of a cluster: ${fault}. Expected is an SQLite database with application id ` +
      `${APPLICATION_ID}. Nothing was changed. Put the file back, or choose another directory with --data to begin with ` +
      'an empty cluster',
  );
