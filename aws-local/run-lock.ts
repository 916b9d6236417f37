import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from '../shared/host/start-error.ts';
import { replaceFile } from '../shared/host/write-file.ts';

/** One local mode a data directory: two engines on one database file would destroy it. */
export interface RunLock {
  /** Records the engine: a later start can end one that was left behind. */
  engineStarted(enginePid: number | undefined): void;
  release(): void;
}

interface RunRecord {
  readonly pid: number;
  readonly enginePid?: number | undefined;
}

const LEFT_ENGINE_WAIT_MS = 3_000;
const LEFT_ENGINE_POLL_MS = 50;
/** Data directories in use by this very process. */
const held = new Set<string>();

/**
 * @param file where the owner is noted
 * @param databaseFile what the command line of an engine of this directory contains
 * @throws StartError when another process uses the directory
 */
export async function takeRunLock(file: string, databaseFile: string): Promise<RunLock> {
  const previous = read(file);
  const ours = previous?.pid === process.pid;
  const inUse = ours ? held.has(file) : previous !== undefined && /node/.test(commandOf(previous.pid));
  if (inUse) {
    throw new StartError(
      `the data directory is in use by process ${previous?.pid}: stop that one, or choose another with --data`,
    );
  }
  if (previous?.enginePid !== undefined) await endLeftEngine(previous.enginePid, databaseFile);
  held.add(file);
  const write = (record: RunRecord) => replaceFile(file, JSON.stringify(record));
  write({ pid: process.pid });
  return {
    engineStarted: (enginePid) => write({ pid: process.pid, enginePid }),
    release: () => {
      held.delete(file);
      rmSync(file, { force: true });
    },
  };
}

/**
 * An engine normally ends with its parent; this is for one that did not. Only a process that has our file open by name.
 */
async function endLeftEngine(pid: number, databaseFile: string): Promise<void> {
  if (!commandOf(pid).includes(databaseFile)) return;
  process.kill(pid, 'SIGTERM');
  const untilMs = performance.now() + LEFT_ENGINE_WAIT_MS;
  while (commandOf(pid).includes(databaseFile)) {
    if (performance.now() > untilMs)
      throw new StartError(`an engine of an earlier run, process ${pid}, does not end: stop it by hand`);
    await delay(LEFT_ENGINE_POLL_MS);
  }
}

function read(file: string): RunRecord | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as RunRecord;
  } catch {
    return undefined;
  }
}

/** Command line of a process, empty when there is none. */
function commandOf(pid: number): string {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return execFileSync('ps', ['-p', String(pid), '-o', 'command='], { encoding: 'utf8' });
  } catch {
    return '';
  }
}
