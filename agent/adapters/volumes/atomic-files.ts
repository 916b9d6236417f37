/**
 * Replaces all files of a volume at once. Source: upstream pkg/volume/util/atomic_writer.go.
 *
 *   <volume>/..<time and number>/<file>    the files of one write
 *   <volume>/..data                        link to the newest of these directories; replaced by a rename
 *   <volume>/<first name of a path>        link to `..data/<first name>`
 */
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, normalize, relative, sep } from 'node:path';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { VolumeFile } from '../../ports/pod-volumes.ts';

const DATA = '..data';
const NEW_DATA = '..data_tmp';
const DIRECTORY_MODE = 0o755;
const PATH_LENGTH_MAX = 4_096;

type Files = ReadonlyMap<string, VolumeFile>;

/** @returns false if the files are already there @throws Error; the previous files stay */
export function writeAtomically(directory: string, files: Files): boolean {
  const checked = new Map([...files].map(([path, file]) => [checkedPath(path), file]));
  const previous = dataDirectory(directory);
  if (previous !== undefined && hasSameFiles(join(directory, previous), checked)) return false;
  const written = writeDirectory(directory, checked);
  rmSync(join(directory, NEW_DATA), { force: true });
  symlinkSync(written, join(directory, NEW_DATA));
  renameSync(join(directory, NEW_DATA), join(directory, DATA));
  updateLinks(directory, checked);
  for (const name of readdirSync(directory)) {
    if (name.startsWith('..') && name !== DATA && name !== written) rmSync(join(directory, name), { recursive: true });
  }
  return true;
}

/** @throws Error for a path that leaves the volume */
function checkedPath(path: string): string {
  const clean = normalize(path);
  const names = clean.split(sep);
  if (path === '' || path.startsWith('/')) throw new Error(`invalid path: must be relative path: ${path}`);
  if (names.includes('..')) throw new Error(`invalid path: must not contain '..': ${path}`);
  if (clean.startsWith('..')) throw new Error(`invalid path: must not start with '..': ${path}`);
  if (path.length > PATH_LENGTH_MAX) throw new Error(`invalid path: longer than ${PATH_LENGTH_MAX} characters`);
  return clean;
}

function dataDirectory(directory: string): string | undefined {
  try {
    return readlinkSync(join(directory, DATA));
  } catch {
    return undefined;
  }
}

function hasSameFiles(directory: string, files: Files): boolean {
  try {
    const found = filesIn(directory);
    if (found.length !== files.size) return false;
    return [...files].every(([path, { bytes, mode }]) => {
      const absolute = join(directory, path);
      // The group adds permissions.
      return (statSync(absolute).mode & mode) === mode && readFileSync(absolute).equals(bytes);
    });
  } catch {
    return false;
  }
}

const filesIn = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)));

/** Returns the name of the new directory. */
function writeDirectory(directory: string, files: Files): string {
  const path = mkdtempSync(join(directory, `..${Date.now()}.`));
  try {
    chmodSync(path, DIRECTORY_MODE);
    for (const [name, { bytes, mode, userId }] of files) {
      const file = join(path, name);
      makeDirectory(dirname(file), DIRECTORY_MODE);
      writeFileSync(file, bytes);
      // The mode of a new file depends on the umask.
      chmodSync(file, mode);
      if (userId !== undefined) chownSync(file, userId, statSync(file).gid);
    }
    return relative(directory, path);
  } catch (cause) {
    rmSync(path, { recursive: true });
    throw cause;
  }
}

function updateLinks(directory: string, files: Files): void {
  const wanted = new Set([...files.keys()].map((path) => path.split(sep, 1)[0] ?? path));
  const present = new Set(readdirSync(directory));
  for (const name of present) {
    if (!name.startsWith('..') && !wanted.has(name)) rmSync(join(directory, name), { recursive: true });
  }
  for (const name of wanted) if (!present.has(name)) symlinkSync(join(DATA, name), join(directory, name));
}
