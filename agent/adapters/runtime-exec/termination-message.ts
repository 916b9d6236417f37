/**
 * The last message of a container. Source: upstream pkg/kubelet/kuberuntime (getTerminationMessage), Kubernetes:
 * "Determine the Reason for Pod Failure".
 */
import { chmodSync, closeSync, constants, fstatSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs';
import type { Container } from '../../../shared/kinds/types.ts';

const MESSAGE_BYTES_MAX = 4_096;
const LOG_BYTES_MAX = 2_048;
const LOG_LINES_MAX = 80;
/** Every user may write the message. */
const MESSAGE_MODE = 0o666;

const setUpFile = (messageFile: string): string => `${messageFile}.set-up`;

/** Creates the empty file for the message of the next run. @throws Error of the file system */
export function prepareMessageFiles(messageFile: string): void {
  writeFileSync(messageFile, '');
  chmodSync(messageFile, MESSAGE_MODE);
  rmSync(setUpFile(messageFile), { force: true });
}

/** Opens the file for the reason if the process cannot be set up. @throws Error of the file system */
export const openSetUpMessage = (messageFile: string): number => openSync(setUpFile(messageFile), 'w', 0o600);

/** Why the process was not set up; '' if it was. */
export const setUpMessage = (messageFile: string): string => readQuietly(setUpFile(messageFile)).trim();

/** Whether the process has been set up. */
export const isSetUp = (messageFile: string): boolean => {
  const text = readQuietly(setUpFile(messageFile));
  return text !== '' && text.trim() === '';
};

/** '' if the container left none. @param logTail the last bytes of its output */
export function terminationMessage(
  { terminationMessagePolicy }: Container,
  messageFile: string,
  exitCode: number,
  logTail: (bytesMax: number) => Buffer,
): string {
  const message = readQuietly(messageFile);
  if (message !== '' || exitCode === 0 || terminationMessagePolicy !== 'FallbackToLogsOnError') return message;
  try {
    return logTail(LOG_BYTES_MAX)
      .toString('utf8')
      .split('\n')
      .slice(-LOG_LINES_MAX - 1)
      .join('\n');
  } catch {
    return '';
  }
}

/** The end of the file, as upstream. The container writes it, so it may have any size. */
function readQuietly(path: string): string {
  try {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stat = fstatSync(descriptor);
      if (!stat.isFile()) return '';
      const bytes = Buffer.alloc(MESSAGE_BYTES_MAX);
      const length = readSync(descriptor, bytes, 0, bytes.length, Math.max(0, stat.size - MESSAGE_BYTES_MAX));
      return bytes.subarray(0, length).toString('utf8');
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return '';
  }
}
