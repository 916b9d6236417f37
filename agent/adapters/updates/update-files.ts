/** The directory of installed agents on the disk. */
import { join } from 'node:path';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { UpdateFile, UpdateFiles } from '../../ports/update-files.ts';
import { close, fsync, open, readdir, readFile, readlink, rename, rm, symlink, writeFile } from '../system/files.ts';
import { syncDirectory } from '../system/state-file.ts';

/** Node reads the agent; nothing executes it. */
const OWNER_ONLY = 0o600;

/**
 * @param hasLinks whether a link is one of the file system; otherwise it is a file with the name of its target, because
 * Windows has no links that every file system supports
 */
export function updateFiles(directory: string, hasLinks = process.platform !== 'win32'): UpdateFiles {
  const at = (name: string): string => join(directory, name);
  async function create(name: string): Promise<UpdateFile> {
    makeDirectory(directory, 0o700);
    // Also replaces a link, which would write to its target.
    await rm(at(name), { force: true });
    const file = await open(at(name), 'wx', OWNER_ONLY);
    return {
      write: (bytes) => writeFile(file, bytes),
      sync: () => fsync(file),
      close: () => close(file),
    };
  }
  return {
    readText: (name) => unlessMissing(readFile(at(name), 'utf8')),
    readLink: (name) => unlessMissing(hasLinks ? readlink(at(name)) : readFile(at(name), 'utf8')),
    names: async () => (await unlessMissing(readdir(directory))) ?? [],
    create,
    async link(name, target) {
      if (hasLinks) return symlink(target, at(name));
      const file = await create(name);
      try {
        await file.write(Buffer.from(target));
        await file.sync();
      } finally {
        await file.close();
      }
    },
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
