/**
 * Output of a container. Its processes write to the file themselves, so that they can outlive the agent; the agent looks
 * at its size now and then. What is written between copying and cutting is lost.
 */
import { closeSync, ftruncateSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import { removeQuietly } from './pod-record.ts';

/** For appending, so that writers go on at the new end after the file was cut. */
export const openLog = (path: string): number => openSync(path, 'a', 0o640);

/**
 * Moves the last `bytesMax` of a file that has grown beyond that to `<path>.1`, in place of what was there. The file is cut
 * also where there is no room for the copy: then its growth may be what filled the disk.
 *
 * @throws Error when the file was not cut, or was cut without a copy
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
