/** Runs of programs of this machine, each with bounds on its time and its output. */
import { type ExecFileException, execFile } from 'node:child_process';

export interface ProgramBounds {
  /** After it the program is killed. */
  readonly timeoutMs: number;
  /** Of its output, and of its error output. A program that prints more is killed. */
  readonly outputBytesMax: number;
}

/** A program failed. The message is its error output, or what happened to it. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError';
  /** Its exit code, or that of the fault of its start, such as `ENOENT`. Undefined if it did not exit by itself. */
  readonly code: number | string | undefined;

  constructor(message: string, cause: ExecFileException) {
    super(message, { cause });
    this.code = cause.code ?? undefined;
  }
}

/**
 * The output of a program that exits with 0.
 *
 * @throws ProgramError
 */
export function runProgram(
  program: string,
  args: readonly string[],
  { timeoutMs, outputBytesMax }: ProgramBounds,
  input = '',
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: outputBytesMax } as const;
    const child = execFile(program, args, options, (cause, output, errorOutput) => {
      if (cause === null) return resolve(output);
      const message = cause.killed ? `did not end within ${timeoutMs / 1_000} s` : errorOutput.trim() || cause.message;
      reject(new ProgramError(message, cause));
    });
    // The program may end before it has read everything; its exit says why.
    child.stdin?.once('error', () => undefined);
    child.stdin?.end(input);
  });
}
