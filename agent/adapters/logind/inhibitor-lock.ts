/**
 * logind's delay lock is a file descriptor, which Node cannot receive, so a child process holds it. `systemd-inhibit`
 * acquires the lock and runs `cat`. `cat` exits when its pipe to this process closes: at the release, or when this
 * process dies for any reason.
 */
import { spawn } from 'node:child_process';
import type { Inhibitor } from '../../rules/shutdown-start.ts';
import { signal } from '../runtime-exec/process-table.ts';

export class InhibitorLockError extends Error {
  override readonly name = 'InhibitorLockError';
}

export interface InhibitorLock {
  /** Aborted when the lock is lost without a release. */
  readonly lost: AbortSignal;
  /** Calling it again does nothing. */
  release(): Promise<void>;
}

const STDERR_MAX = 2_000;
/** `cat` runs once the lock is held, and sends this text back. */
const ECHO = 'held\n';

/** `timeoutMs` is the time limit of the acquisition, and of the release. */
export async function takeInhibitorLock(
  busAddress: string,
  { what, who, why, mode }: Inhibitor,
  timeoutMs: number,
): Promise<InhibitorLock> {
  const args = [`--what=${what}`, `--who=${who}`, `--why=${why}`, `--mode=${mode}`, 'cat'];
  const child = spawn('systemd-inhibit', args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    // Its own session: an interrupt at the terminal reaches only this process.
    detached: true,
    env: { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: busAddress },
  });
  const lost = new AbortController();
  let released = false;
  let stderr = '';
  child.stderr.on('data', (data: Buffer) => {
    stderr = (stderr + data.toString()).slice(0, STDERR_MAX);
  });
  // A broken pipe is detected by the exit of the child.
  child.stdin.on('error', () => undefined);
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(stderr.trim() || `it ended with ${signal ?? code}`));
  });
  void exited.then(() => {
    if (!released) lost.abort();
  });
  const echoed = new Promise<'held'>((resolve) => {
    let heard = '';
    child.stdout.on('data', (data: Buffer) => {
      if (heard.length < ECHO.length) heard += data.toString();
      if (heard.startsWith(ECHO)) resolve('held');
    });
  });

  async function orLate<T>(work: Promise<T>): Promise<T | 'late'> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), timeoutMs);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async function release(): Promise<void> {
    released = true;
    child.stdin.end();
    if ((await orLate(exited)) !== 'late') return;
    // Its children too: they hold its output open. Those that have exited meanwhile are no failure.
    signal(-child.pid!, 'SIGKILL');
    await orLate(exited);
  }

  child.stdin.write(ECHO);
  const outcome = await orLate(Promise.race([echoed, exited.then((error) => ({ error }))]));
  if (outcome === 'held') return { lost: lost.signal, release };
  await release();
  const reason = outcome === 'late' ? `no answer in ${timeoutMs} ms` : outcome.error;
  throw new InhibitorLockError(`systemd-inhibit could not acquire the lock: ${reason}`);
}
