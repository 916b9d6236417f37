/** A small file that is replaced as a whole, and survives a crash in between. */
import { dirname, join } from 'node:path';
import { close, fchmod, fsync, open, readFile, rename, rm, writeFile } from './files.ts';

export interface StateFile {
  /** Undefined when there is none. */
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

/** For whoever looks after the machine, whatever the umask of the process. */
const READABLE = 0o644;

/** Writes it beside under the temporary name first, in the same directory. Nothing of that is left when it fails. */
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
    // What it says of the disk, the cause says as well.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw cause;
  }
}

/** What was made, renamed or removed in it outlasts a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  // Windows cannot; its file systems keep their own journal of names.
  if (process.platform === 'win32') return;
  const directory = await open(path, 'r');
  try {
    await fsync(directory);
  } catch (cause) {
    // Of a file system that has no such thing, which is its way of saying so (fsync(2)).
    if ((cause as NodeJS.ErrnoException).code !== 'EINVAL') throw cause;
  } finally {
    await close(directory);
  }
}

export function stateFile(path: string, temporaryName: string): StateFile {
  return {
    async read() {
      try {
        return await readFile(path, 'utf8');
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw cause;
      }
    },
    write: (text) => replaceFile(path, temporaryName, text, READABLE),
  };
}
