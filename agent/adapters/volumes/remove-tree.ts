/** Removes directories of pods without blocking the agent. */
import { execFile } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { promisify } from 'node:util';

const run = promisify(execFile);

const RM = '/bin/rm';
/** Longest removal; the next attempt continues it. Milliseconds. */
const REMOVAL_MS = 600_000;

/**
 * Removes a directory with everything in it, in a process of its own: a pod may have written a million files, and
 * directories that are too deep for a path. Does nothing if there is none.
 *
 * @param path absolute
 * @throws Error with the message of rm(1)
 */
export async function removeTree(path: string): Promise<void> {
  // Stryker disable next-line ConditionalExpression: saves a process
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
  try {
    await run(RM, ['-rf', path], { timeout: REMOVAL_MS, killSignal: 'SIGKILL' });
  } catch (cause) {
    const { stderr, message } = cause as Error & { readonly stderr: string };
    // One line per file.
    throw new Error(stderr.trim().split('\n', 1)[0] || message, { cause });
  }
}
