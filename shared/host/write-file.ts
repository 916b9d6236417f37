/** Writes of whole files in the data directory: complete or not at all, and readable by their owner only. */
import { appendFileSync, renameSync, statSync, truncateSync, writeFileSync } from 'node:fs';

/** Everything in a data directory is as secret as the tokens in it. */
export const PRIVATE_FILE = 0o600;
export const PRIVATE_DIRECTORY = 0o700;

/**
 * Replaces a file. After a fault it has its old content or the new one.
 *
 * @param options sync: also after a power cut. It waits for the disk.
 * @throws the fault of the disk
 */
export function replaceFile(file: string, content: string, options: { readonly sync?: boolean } = {}): void {
  const temporary = `${file}.new`;
  writeFileSync(temporary, content, { mode: PRIVATE_FILE, flush: options.sync ?? false });
  renameSync(temporary, file);
}

/**
 * Appends lines. After a fault the file has none of them: half a line would spoil the next one. @throws the fault of
 * the disk
 */
export function appendLines(file: string, lines: string): void {
  const bytes = sizeOf(file);
  try {
    appendFileSync(file, lines, { mode: PRIVATE_FILE });
  } catch (fault) {
    if (sizeOf(file) > bytes) truncateSync(file, bytes);
    throw fault;
  }
}

/** Bytes of a file, 0 when there is none. */
export const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
