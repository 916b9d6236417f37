import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { takeRunLock } from './run-lock.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodekeeper-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  file = join(folder, 'run.json');
});

/** A process that only waits, with this on its command line after `--`: Node exits at options it does not know. */
function aProcess(...args: string[]) {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', '--', ...args], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

describe('the lock of a data directory', () => {
  it('is free after its release, and not before', async () => {
    const lock = await takeRunLock(file, 'x.sqlite');
    await expect(takeRunLock(file, 'x.sqlite')).rejects.toThrow(/in use by process/);
    lock.release();
    expect(existsSync(file)).toBe(false);
    (await takeRunLock(file, 'x.sqlite')).release();
  });

  it('is held by another process that lives', async () => {
    const other = aProcess();
    writeFileSync(file, JSON.stringify({ pid: other.pid }));
    await expect(takeRunLock(file, 'x.sqlite')).rejects.toThrow(`the data directory is in use by process ${other.pid}`);
  });

  it('is free when its holder no longer exists, and ends the engine that was left behind', async () => {
    const engine = aProcess('--db-path', join(folder, 'x.sqlite'));
    const ended = once(engine, 'exit');
    writeFileSync(file, JSON.stringify({ pid: 2 ** 22 + 1, enginePid: engine.pid }));
    (await takeRunLock(file, join(folder, 'x.sqlite'))).release();
    expect((await ended)[1]).toBe('SIGTERM');
  });

  it('leaves alone a process that only has the number of an old engine', async () => {
    const stranger = aProcess('--something', 'else');
    writeFileSync(file, JSON.stringify({ pid: 2 ** 22 + 1, enginePid: stranger.pid }));
    (await takeRunLock(file, join(folder, 'x.sqlite'))).release();
    expect(stranger.exitCode).toBeNull();
    expect(stranger.signalCode).toBeNull();
  });

  it('does not trip over a damaged file', async () => {
    writeFileSync(file, '{');
    (await takeRunLock(file, 'x.sqlite')).release();
  });
});
