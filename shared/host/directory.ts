/** Creates directories without the recursion of node:fs. */
import { mkdirSync, statSync } from 'node:fs';
import { resolve, sep } from 'node:path';

/**
 * Creates a directory and its parents, as `mkdir -p`. An existing one is not changed.
 *
 * Each name is tried once. `mkdirSync` with `recursive` retries forever if the kernel answers ENOENT for a name inside
 * an existing directory, as /proc does.
 *
 * @throws Error of the file system
 */
export function makeDirectory(path: string, mode: number): void {
  if (isDirectory(path)) return;
  const names = resolve(path).split(sep);
  for (let count = 2; count <= names.length; count += 1) {
    const directory = names.slice(0, count).join(sep);
    try {
      mkdirSync(directory, { mode });
    } catch (cause) {
      if (!isDirectory(directory)) throw cause;
    }
  }
}

const isDirectory = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
};
