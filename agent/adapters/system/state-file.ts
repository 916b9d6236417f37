/** A small file that is replaced as a whole, and survives a crash in between. */
import { open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export interface StateFile {
  /** Undefined when there is none. */
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

export function stateFile(path: string, temporaryName: string): StateFile {
  const temporary = join(dirname(path), temporaryName);
  return {
    async read() {
      try {
        return await readFile(path, 'utf8');
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw cause;
      }
    },
    async write(text) {
      const file = await open(temporary, 'w', 0o644);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    },
  };
}
