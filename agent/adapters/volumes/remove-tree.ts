/** Removes directories of pods without blocking the agent. */
import { lstatSync } from 'node:fs';
import { runProgram } from '../system/run-program.ts';

const RM = '/bin/rm';
/** The next attempt continues a removal that took longer. */
const BOUNDS = { timeoutMs: 600_000, outputBytesMax: 1024 * 1024 };

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
    await runProgram(RM, ['-rf', path], BOUNDS);
  } catch (cause) {
    // One line per file.
    throw new Error((cause as Error).message.split('\n', 1)[0], { cause });
  }
}
