/** The outcome of a command that runs in a container. */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { CommandResult } from '../../ports/pod-runtime.ts';
import { POLL_MS, type PodProcesses } from './pod-processes.ts';

/** The output of a probe in its event is cut here, as upstream. */
const OUTPUT_BYTES_MAX = 10 * 1024;
/** Longest wait for output after the exit of a command. Milliseconds. */
const OUTPUT_WAIT_MS = 200;
const EXIT_SIGNALLED = 128;

/** @param mayWait `timedOut` is returned when this is false */
export async function commandResult(
  child: ChildProcess,
  processes: Pick<PodProcesses, 'after' | 'isDetached' | 'pause' | 'wake'>,
  mayWait: () => boolean,
): Promise<CommandResult> {
  let result: CommandResult | undefined;
  const finish = (finished: CommandResult): void => {
    result ??= finished;
    processes.wake();
  };
  const pieces: Buffer[] = [];
  let length = 0;
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (piece: Buffer) => {
      if (length < OUTPUT_BYTES_MAX) pieces.push(piece.subarray(0, OUTPUT_BYTES_MAX - length));
      length += piece.length;
    });
  }
  child.once('error', (cause) => finish({ kind: 'failed', message: cause.message }));
  child.once('exit', (code, name) => {
    const exitCode = code ?? EXIT_SIGNALLED + (name === null ? 0 : constants.signals[name]);
    const exited = () => finish({ kind: 'exited', exitCode, output: Buffer.concat(pieces).toString('utf8') });
    child.once('close', exited);
    // A child of the command may keep its output open.
    processes.after(OUTPUT_WAIT_MS, exited);
  });
  child.unref();
  while (result === undefined && mayWait() && !processes.isDetached) await processes.pause(POLL_MS);
  return result ?? { kind: 'timedOut' };
}
