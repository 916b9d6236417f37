/** A small file that is replaced as a whole. A crash leaves the old or the new content. */
import { dirname, join } from 'node:path';
import { close, fchmod, fsync, open, readFile, rename, rm, writeFile } from './files.ts';

export interface StateFile {
  /** Undefined when there is none. */
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

/** Readable by administrators, whatever the umask of the process. */
const READABLE = 0o644;

/** Writes a temporary file in the same directory and renames it. If that fails, the temporary file is removed. */
export async function replaceFile(path: string, temporaryName: string, text: string, mode: number): Promise<void> {
  const temporary = join(dirname(path), temporaryName);
  try {
    const file = await open(temporary, 'w', mode);
    try {
      await fchmod(file, mode);
      await writeFile(file, text);
      await fsync(file);
    } finally {
      await close(file);
    }
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (cause) {
    // The cause describes the error of the disk.
    await rm(temporary).catch(() => undefined);
    throw cause;
  }
}

/** Entries that were created, renamed or removed in the directory survive a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  // Windows cannot sync directories; its file systems journal their names.
  if (process.platform === 'win32') return;
  const directory = await open(path, 'r');
  try {
    await fsync(directory);
  } catch (cause) {
    // The file system does not support it, and reports that with this code (fsync(2)).
    if ((cause as NodeJS.ErrnoException).code !== 'EINVAL') throw cause;
  } finally {
    await close(directory);
  }
}

/** Undefined when the file does not exist. */
export async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
}

export function stateFile(path: string, temporaryName: string): StateFile {
  return {
    read: () => textOf(path),
    write: (text) => replaceFile(path, temporaryName, text, READABLE),
  };
}
