/** The switch of a site for the power of its machines: a program of the user's. */
import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { StartError } from '../../../shared/host/start-error.ts';
import type { Log } from '../../../shared/observability/log.ts';

/** A switch that does not answer says nothing of the machine. Milliseconds. */
const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES_MAX = 64_000;
const LINE_CHARACTERS_MAX = 300;

/** @throws StartError if it cannot be started */
export function requireProgram(file: string): void {
  try {
    accessSync(file, constants.X_OK);
    if (!statSync(file).isFile()) throw new Error('it is no file');
  } catch (cause) {
    throw new StartError(`--power-off: ${file} cannot be started: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Runs the program with the name of the node as its only argument. Exit code 0: the machine has had no power since the
 * program began, if only for a moment. Every other end is false, and logged.
 */
export const powerSwitch =
  (file: string, log: Log, timeoutMs = TIMEOUT_MS) =>
  (nodeName: string): Promise<boolean> =>
    new Promise<boolean>((resolve) => {
      const bounds = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES_MAX } as const;
      execFile(file, [nodeName], bounds, (error, _stdout, stderr) => {
        if (error !== null) {
          const said = stderr.trim().split('\n').at(-1)?.slice(0, LINE_CHARACTERS_MAX);
          const why = error.killed === true ? `no end within ${timeoutMs / 1_000} s` : said || error.message;
          log.warn('the program of the power switch failed', { nodeName, why });
        }
        resolve(error === null);
      });
    }).catch((error: Error) => {
      // Without memory for a process, execFile throws.
      log.warn('the program of the power switch failed', { nodeName, why: error.message });
      return false;
    });
