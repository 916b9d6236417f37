/**
 * Output of a container. Its processes write to the file themselves, so they can outlive the agent. The agent checks
 * the size periodically. Output written between copying and truncating is lost.
 */
import { closeSync, ftruncateSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import { removeQuietly } from './pod-record.ts';

/** Opened for appending: writers continue at the new end after the file was truncated. */
export const openLog = (path: string): number => openSync(path, 'a', 0o640);

/**
 * Moves the last `bytesMax` of a longer file to `<path>.1`, replacing that file. The file is truncated even if there is
 * no space for the copy, because its growth may have filled the disk.
 *
 * @throws Error when the file was not truncated, or was truncated without a copy
 */
export function boundLog(path: string, bytesMax: number): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= bytesMax) return;
  const file = openSync(path, 'r+');
  try {
    const tail = Buffer.alloc(bytesMax);
    const read = readSync(file, tail, 0, bytesMax, size - bytesMax);
    try {
      writeFileSync(`${path}.1`, tail.subarray(0, read), { mode: 0o640 });
    } catch (cause) {
      removeQuietly(`${path}.1`);
      if (['ENOSPC', 'EDQUOT'].includes((cause as NodeJS.ErrnoException).code ?? '')) ftruncateSync(file);
      throw cause;
    }
    ftruncateSync(file);
  } finally {
    closeSync(file);
  }
}
