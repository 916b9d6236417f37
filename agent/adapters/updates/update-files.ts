/** The directory of installed agents on the disk. */
import { join } from 'node:path';
import type { UpdateFiles } from '../../ports/update-files.ts';
import { makeDirectory } from '../system/directory.ts';
import { close, fsync, open, readdir, readFile, readlink, rename, rm, symlink, writeFile } from '../system/files.ts';
import { syncDirectory } from '../system/state-file.ts';

/** Node reads the agent; nothing executes it. */
const OWNER_ONLY = 0o600;

export function updateFiles(directory: string): UpdateFiles {
  const at = (name: string): string => join(directory, name);
  return {
    readText: (name) => unlessMissing(readFile(at(name), 'utf8')),
    readLink: (name) => unlessMissing(readlink(at(name))),
    names: async () => (await unlessMissing(readdir(directory))) ?? [],
    async create(name) {
      makeDirectory(directory, 0o700);
      // Also replaces a link, which would write to its target.
      await rm(at(name), { force: true });
      const file = await open(at(name), 'wx', OWNER_ONLY);
      return {
        write: (bytes) => writeFile(file, bytes),
        sync: () => fsync(file),
        close: () => close(file),
      };
    },
    link: (name, target) => symlink(target, at(name)),
    rename: (from, to) => rename(at(from), at(to)),
    remove: (name) => rm(at(name), { force: true }),
    syncNames: () => syncDirectory(directory),
  };
}

async function unlessMissing<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    // EINVAL: not a link. ENOTDIR: a directory above is a file.
    if (code === 'ENOENT' || code === 'EINVAL' || code === 'ENOTDIR') return undefined;
    throw cause;
  }
}
