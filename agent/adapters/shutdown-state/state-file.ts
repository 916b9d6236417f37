/** The file of the last shutdown in the agent's own folder; whole at any time, whatever befalls the machine meanwhile. */
import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SHUTDOWN_STATE_FILE } from '../../rules/shutdown-state.ts';

export interface StateFile {
  /** Undefined when there is none. Throws when it cannot be read. */
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

export function shutdownStateFile(rootDirectory: string): StateFile {
  const file = join(rootDirectory, SHUTDOWN_STATE_FILE);
  return {
    async read() {
      try {
        return await readFile(file, 'utf8');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    async write(text) {
      const temporary = join(rootDirectory, `.tmp-${SHUTDOWN_STATE_FILE}${randomBytes(6).toString('hex')}`);
      try {
        const handle = await open(temporary, 'wx', 0o644);
        try {
          await handle.writeFile(text);
          // Whatever the mask of this process is: the file is for everybody to read.
          await handle.chmod(0o644);
          await handle.sync();
        } finally {
          await handle.close();
        }
        await rename(temporary, file);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
    },
  };
}
