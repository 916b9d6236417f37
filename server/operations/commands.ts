/**
 * nodekeeper backup, check and restore: the file of a cluster on this machine. A running cluster does the first two
 * itself; otherwise the command opens the file. All three print a line, and exit with 1 when something is wrong.
 */
import { chownSync, copyFileSync, existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock, systemRandom } from '../../shared/clock.ts';
import { ControlError } from '../../shared/host/control-socket.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { writeHistory } from '../../shared/store/store-history.ts';
import { DEFAULT_DATA_DIRECTORY } from '../options.ts';
import { syncDirectory, syncFile } from '../store/open-database.ts';
import { openSqliteStore, type RowCounts, StoreOpenError } from '../store/sqlite-store.ts';
import { lockStore, moveLockOf } from '../store/store-lock.ts';
import { OPERATIONS_SOCKET, type Operation, type OperationReply, operate, sendOperation } from './operations.ts';

const OPERATIONS_USAGE = [
  'nodekeeper backup FILE [--data DIR]    a copy of the database, also while the cluster runs',
  'nodekeeper check [--data DIR]          reads the whole database, also while the cluster runs',
  'nodekeeper restore FILE [--data DIR]   puts a backup in the place of the database, which is kept',
].join('\n');

const SUFFIXES = ['', '-wal', '-shm'] as const;

interface OperationIo {
  readonly print: (line: string) => void;
  readonly printError: (line: string) => void;
  readonly nowMs: number;
}

type Command = (words: readonly string[], database: string, io: OperationIo) => Promise<void>;

const COMMANDS: Readonly<Record<string, Command>> = { backup, check, restore };

/** @returns the exit code */
export async function operationCommand(verb: string, args: readonly string[], io: OperationIo): Promise<number> {
  try {
    const { values, positionals } = parsed(args);
    const directory = values.data ?? DEFAULT_DATA_DIRECTORY;
    await COMMANDS[verb]!(positionals, join(resolve(directory), 'data', 'nodekeeper.db'), io);
    return 0;
  } catch (error) {
    const isExpected = [StartError, StoreOpenError, ControlError].some((kind) => error instanceof kind);
    if (!isExpected) throw error;
    io.printError(`nodekeeper ${verb}: ${(error as Error).message}`);
    return 1;
  }
}

/** Only a copy of ours has such a name: an operator may name a backup `nodekeeper.db.backup-20260101`. */
const COPY_OF_PROCESS = '.unfinished-backup-of-process-';

async function backup(words: readonly string[], database: string, io: OperationIo): Promise<void> {
  const file = resolve(fileIn(words));
  if (existsSync(file)) throw new StartError(`${file} exists: name a file that does not`);
  if (!existsSync(dirname(file))) throw new StartError(`the directory ${dirname(file)} does not exist`);
  // A service writes nowhere but in its own directory: the copy is moved from there to FILE.
  removeLeftCopies(database);
  const isForeign = existsSync(database) && statSync(database).uid !== process.getuid?.();
  const copy = isForeign ? `${database}${COPY_OF_PROCESS}${process.pid}` : file;
  try {
    const reply = await operateOn(database, { verb: 'backup', file: copy });
    if (isForeign) placeCopy(copy, file);
    if (reply.kind === 'backedUp') io.print(`${file} has ${countText(reply.rows)}`);
  } finally {
    if (isForeign) rmSync(copy, { force: true });
  }
}

/** Copies of commands that were killed. The cluster completes the copy of such a command, too. */
function removeLeftCopies(database: string): void {
  const directory = dirname(database);
  const prefix = `${basename(database)}${COPY_OF_PROCESS}`;
  for (const name of existsSync(directory) ? readdirSync(directory) : []) {
    const pid = name.startsWith(prefix) ? /^([1-9]\d*)(\.new)?$/.exec(name.slice(prefix.length))?.[1] : undefined;
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(directory, name), { force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Under its name only when it is complete and durable. @throws StartError */
function placeCopy(copy: string, file: string): void {
  const unfinished = `${file}.new`;
  try {
    copyFileSync(copy, unfinished);
    syncFile(unfinished);
    renameSync(unfinished, file);
    syncDirectory(file);
  } catch (cause) {
    rmSync(unfinished, { force: true });
    throw new StartError(`${file} cannot be written: ${(cause as Error).message}`, { cause });
  }
}

async function check(words: readonly string[], database: string, io: OperationIo): Promise<void> {
  if (words.length > 0) throw new StartError(`unexpected ${words[0]}\n${OPERATIONS_USAGE}`);
  const reply = await operateOn(database, { verb: 'check' });
  if (reply.kind !== 'checked') return;
  const { findings, rows, layoutVersion } = reply.check;
  if (findings.length > 0) {
    throw new StartError(`${database} is damaged: restore a backup\n${findings.map((line) => `  ${line}`).join('\n')}`);
  }
  io.print(`${database} is sound: layout ${layoutVersion}, ${countText(rows)}`);
}

/**
 * A copy of the backup is opened and read as a whole before anything is moved. The moves are renames under the lock of
 * the database: a crash between them leaves the files complete under one of their names, and the next start says what
 * is missing.
 */
async function restore(words: readonly string[], database: string, io: OperationIo): Promise<void> {
  const file = resolve(fileIn(words));
  if (!existsSync(file)) throw new StartError(`${file} does not exist`);
  if (!existsSync(dirname(database))) {
    throw new StartError(`${dirname(database)} does not exist: --data names the directory of the cluster`);
  }
  // As a move: none sets a fence between the look at it and the end.
  const moving = lockStore(moveLockOf(database));
  try {
    await requireNotMoved(database);
    await replaceBy(file, database, io);
  } finally {
    moving.release();
  }
}

async function replaceBy(file: string, database: string, io: OperationIo): Promise<void> {
  const lock = lockStore(database);
  const copy = `${database}.restored`;
  try {
    for (const suffix of [...SUFFIXES, '.lock']) rmSync(`${copy}${suffix}`, { force: true });
    copyFileSync(file, copy);
    const { uid, gid } = statSync(dirname(database));
    // Root restores what a service owns.
    if (process.getuid?.() === 0) chownSync(copy, uid, gid);
    const rows = await soundRows(copy, file);
    await beginHistory(copy);
    syncFile(copy);
    const kept = `${database}.before-${new Date(io.nowMs).toISOString().replaceAll(':', '')}`;
    const hasOld = existsSync(database);
    for (const suffix of SUFFIXES) {
      if (existsSync(`${database}${suffix}`)) renameSync(`${database}${suffix}`, `${kept}${suffix}`);
    }
    renameSync(copy, database);
    syncDirectory(database);
    io.print(`${database} has ${countText(rows)}${hasOld ? `; the one before is ${kept}` : ''}`);
  } finally {
    for (const suffix of [...SUFFIXES, '.lock']) rmSync(`${copy}${suffix}`, { force: true });
    lock.release();
  }
}

/**
 * A backup from before a move would lift its fence: two clusters would serve the same machines.
 *
 * @throws StartError when the database, if it can be read, is one that moves or has moved
 */
async function requireNotMoved(database: string): Promise<void> {
  if (!existsSync(database)) return;
  const reply = await operateOn(database, { verb: 'fence' }).catch((error: unknown) => {
    // What is damaged is what a restore is for.
    if (error instanceof StoreOpenError) return undefined;
    throw error;
  });
  if (reply?.kind !== 'fence' || reply.fence === undefined) return;
  throw new StartError(
    `${database} is being moved to ${reply.fence.to}, or was: end the move with \`nodekeeper move --abandon\` first, or ` +
      'restore into another directory',
  );
}

/** Whoever keeps a copy of the cluster notices by it that the backup is in its place. */
async function beginHistory(copy: string): Promise<void> {
  const store = openSqliteStore({ file: copy, clock: systemClock, synchronous: 'full' });
  try {
    await writeHistory(store.items, systemRandom.uuid());
  } finally {
    await store.close();
  }
}

/** @throws StartError when it is damaged, StoreOpenError when it is none of ours */
async function soundRows(copy: string, file: string): Promise<RowCounts> {
  const store = openSqliteStore({ file: copy, clock: systemClock, synchronous: 'full' });
  try {
    const { findings, rows } = await store.check();
    if (findings.length > 0) throw new StartError(`${file} is damaged: ${findings[0]}`);
    return rows;
  } finally {
    await store.close();
  }
}

/** In the running cluster, or on its file. @throws StartError that says what failed */
export async function operateOn(database: string, operation: Operation): Promise<OperationReply> {
  const socket = join(dirname(dirname(database)), OPERATIONS_SOCKET);
  const outcome = await sendOperation(socket, operation);
  const reply = outcome.kind === 'replied' ? outcome.reply : await operateAlone(database, operation);
  if (reply.kind === 'failed') throw new StartError(reply.why);
  return reply;
}

async function operateAlone(database: string, operation: Operation): Promise<OperationReply> {
  if (!existsSync(database))
    throw new StartError(`${database} does not exist: --data names the directory of the cluster`);
  const store = openSqliteStore({ file: database, clock: systemClock, synchronous: 'full' });
  try {
    return await operate(store, operation);
  } finally {
    await store.close();
  }
}

function fileIn(words: readonly string[]): string {
  const [file, ...others] = words;
  if (file === undefined || others.length > 0) throw new StartError(`one FILE is needed\n${OPERATIONS_USAGE}`);
  return file;
}

const countText = ({ objects, health, control, pending }: RowCounts): string =>
  `${objects} rows of objects, ${health} of health, ${control} of control, ${pending} pending changes`;

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options: { data: { type: 'string' } } });
  } catch (cause) {
    throw new StartError(`${(cause as Error).message}\n${OPERATIONS_USAGE}`, { cause });
  }
}
