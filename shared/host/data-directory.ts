import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isDiskFault } from './delayed-write.ts';
import { makeDirectory } from './directory.ts';
import { StartError } from './start-error.ts';
import { PRIVATE_DIRECTORY, PRIVATE_FILE } from './write-file.ts';

/**
 * What a cluster on this machine keeps between starts; with `--ephemeral` a temporary folder that is deleted when it
 * stops.
 */
export interface DataDirectory {
  readonly path: string;
  readonly ephemeral: boolean;
  readonly databaseFile: string;
  file(name: string): string;
  /** Removes it when ephemeral. */
  dispose(): void;
}

/** Permissions of anybody but the owner. */
const OTHERS = 0o077;
const DATABASE_FOLDER = 'data';
/** Their presence shows that the cluster of this directory has a database. */
const CLUSTER_FILES = ['ca.key', 'tokens.json'];
/** Everything that is written here, besides the database folder. */
const FILES = [
  ...CLUSTER_FILES,
  ...['ca.pem', 'viewer-token', 'kubeconfig', 'run.json', 'cloud.json', 'positions.json'],
  ...['metrics.jsonl', 'metrics.jsonl.1', 'audit.log', 'events.jsonl'],
];
/** May be there before the first start: bundled functions, without secrets. */
const ASSEMBLIES = 'assembly';

export interface DatabaseUse {
  /** Name of the file below the folder of databases. */
  readonly name: string;
  /**
   * Whether this file can be the database of the cluster. `knownBy`: a file that only a cluster with a database has;
   * undefined for a new cluster.
   *
   * @throws StartError if it cannot
   */
  require(file: string, knownBy: string | undefined): void;
}

/**
 * The directory and its files are for their owner only: they have tokens, the key of the authority and all Secrets.
 *
 * @throws StartError when it cannot be used; nothing is changed then
 */
export function openDataDirectory(path: string | undefined, database: DatabaseUse): DataDirectory {
  const ephemeral = path === undefined;
  const folder = ephemeral ? mkdtempSync(join(tmpdir(), 'nodekeeper-')) : resolve(path);
  const file = (name: string) => join(folder, name);
  const databaseFile = join(folder, DATABASE_FOLDER, database.name);
  try {
    makeDirectory(folder, PRIVATE_DIRECTORY);
    database.require(databaseFile, CLUSTER_FILES.map(file).find(existsSync));
    makePrivate(folder);
  } catch (cause) {
    if (!isDiskFault(cause)) throw cause;
    throw new StartError(`the data directory ${folder} cannot be used: ${cause.message}`, { cause });
  }
  return {
    path: folder,
    ephemeral,
    databaseFile,
    file,
    dispose: () => {
      if (ephemeral) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Only what is ours is changed: `--data /tmp` must not close /tmp for everybody else. */
function makePrivate(folder: string): void {
  const entries = readdirSync(folder);
  const isOurs = CLUSTER_FILES.some((name) => entries.includes(name)) || entries.every((name) => name === ASSEMBLIES);
  if (!isOurs && isOpen(folder)) {
    throw new StartError(
      `the data directory ${folder} is open to other users and has files that are not ours: choose a directory of its ` +
        `own with --data, or run chmod 700 ${folder}`,
    );
  }
  const database = join(folder, DATABASE_FOLDER);
  makeDirectory(database, PRIVATE_DIRECTORY);
  for (const directory of [folder, database]) close(directory, PRIVATE_DIRECTORY);
  for (const name of entries.filter((entry) => FILES.includes(entry))) close(join(folder, name), PRIVATE_FILE);
  for (const name of readdirSync(database)) close(join(database, name), PRIVATE_FILE);
}

function close(path: string, mode: number): void {
  if (!isOpen(path)) return;
  try {
    chmodSync(path, mode);
  } catch (cause) {
    throw new StartError(`${path} is open to other users: run chmod ${mode.toString(8)} ${path} as its owner`, {
      cause,
    });
  }
}

const isOpen = (path: string): boolean => (statSync(path).mode & OTHERS) !== 0;
