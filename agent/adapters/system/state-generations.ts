/**
 * A state in two files of one directory: the newest one, and the one before it.
 *
 * The newest file is renamed to the previous one, then the new text is written to a temporary file, synced and renamed.
 * After a crash, or on a full disk, there may be no newest file, and the previous one has what it had. The first line
 * of a file is the hash of the rest: a disk that lost a part of it is noticed.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { GenerationRead, StateGenerations } from '../../ports/state-generations.ts';
import { makeDirectory } from './directory.ts';
import { readFile, rename } from './files.ts';
import { replaceFile } from './state-file.ts';

const NEWEST = 'pods.json';
const PREVIOUS = 'pods.previous.json';
const OWNER_ONLY = 0o600;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const isAbsent = (cause: unknown): boolean => (cause as NodeJS.ErrnoException).code === 'ENOENT';

export function stateGenerations(directory: string): StateGenerations {
  async function readOne(name: string): Promise<readonly GenerationRead[]> {
    try {
      const [hash = '', ...rest] = (await readFile(join(directory, name), 'utf8')).split('\n');
      const text = rest.join('\n');
      return [hash === hashOf(text) ? { kind: 'read', text } : { kind: 'failed', why: `${name} is not complete` }];
    } catch (cause) {
      return isAbsent(cause) ? [] : [{ kind: 'failed', why: (cause as Error).message }];
    }
  }
  return {
    read: async () => [...(await readOne(NEWEST)), ...(await readOne(PREVIOUS))],
    async write(text) {
      makeDirectory(directory, 0o700);
      await rename(join(directory, NEWEST), join(directory, PREVIOUS)).catch((cause: unknown) => {
        if (!isAbsent(cause)) throw cause;
      });
      await replaceFile(join(directory, NEWEST), `.tmp-${NEWEST}`, `${hashOf(text)}\n${text}`, OWNER_ONLY);
    },
  };
}
