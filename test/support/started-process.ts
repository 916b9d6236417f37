/** Processes that do not outlast their test, whether it passes or fails. */
import { type ChildProcess, spawn } from 'node:child_process';
import { onTestFinished } from 'vitest';
import { signal } from '../../agent/adapters/runtime-exec/process-table.ts';

/** Kills a process, and all that it started, after the test. It must be detached: the leader of a group. */
export function endsWithTest(child: ChildProcess): ChildProcess {
  onTestFinished(() => {
    if (child.pid !== undefined) signal(-child.pid, 'SIGKILL');
  });
  return child;
}

/** Starts a program with these variables beside PATH. */
export const startForTest = (file: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): ChildProcess =>
  endsWithTest(spawn(file, args, { env: { PATH: process.env['PATH'], ...env }, stdio: 'pipe', detached: true }));
