/**
 * A state in two files of one directory: the newest one, and the one before it.
 *
 * A new text is complete and synced under another name before anything is renamed: a full disk changes nothing. Then
 * the newest file becomes the previous one, unless it is not complete: the first line of a file is the hash of the
 * rest. After a crash between the renames there is no newest file, and the previous one is read.
 */
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { GenerationRead, StateGenerations } from '../../ports/state-generations.ts';
import { readFile, rename, rm } from './files.ts';
import { replaceFile, syncDirectory } from './state-file.ts';

const NEWEST = 'pods.json';
const NEXT = 'pods.next.json';
const PREVIOUS = 'pods.previous.json';
const OWNER_ONLY = 0o600;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const isAbsent = (cause: unknown): boolean => (cause as NodeJS.ErrnoException).code === 'ENOENT';

export function stateGenerations(directory: string): StateGenerations {
  const at = (name: string): string => join(directory, name);
  async function readOne(name: string): Promise<readonly GenerationRead[]> {
    try {
      const [hash, ...rest] = (await readFile(at(name), 'utf8')).split('\n');
      const text = rest.join('\n');
      return [hash === hashOf(text) ? { kind: 'read', text } : { kind: 'failed', why: `${name} is not complete` }];
    } catch (cause) {
      return isAbsent(cause) ? [] : [{ kind: 'failed', why: (cause as Error).message }];
    }
  }
  return {
    async read() {
      const [newest, previous] = [await readOne(NEWEST), await readOne(PREVIOUS)];
      const isMissing = newest.length === 0 && previous.length > 0;
      return [...(isMissing ? [{ kind: 'failed', why: `${NEWEST} is missing` } as const] : newest), ...previous];
    },
    async write(text) {
      makeDirectory(directory, 0o700);
      await replaceFile(at(NEXT), `.tmp-${NEXT}`, `${hashOf(text)}\n${text}`, OWNER_ONLY);
      const [newest] = await readOne(NEWEST);
      // The directory may be new.
      if (newest === undefined) await syncDirectory(dirname(directory));
      if (newest?.kind === 'read') await rename(at(NEWEST), at(PREVIOUS));
      await rename(at(NEXT), at(NEWEST));
      await syncDirectory(directory);
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}
