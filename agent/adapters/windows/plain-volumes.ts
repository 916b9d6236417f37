/**
 * Volumes on Windows: those of Linux, without groups and without a file system in memory. Each file is replaced by
 * itself. A link to a file needs a right that the agent may not have.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join, normalize, relative } from 'node:path';
import type { PodVolumes, VolumeFile } from '../../ports/pod-volumes.ts';
import { podVolumes } from '../volumes/pod-volumes.ts';

const NEW = '..new';

export function plainVolumes(rootDirectory: string): PodVolumes {
  const root = join(rootDirectory, 'volumes');
  return {
    ...podVolumes({ rootDirectory, memoryDirectory: undefined }),
    writeFiles({ podUid, volume }, files) {
      writeEach(join(root, podUid, volume), files);
    },
    makeEmptyDir({ podUid, volume }) {
      mkdirSync(join(root, podUid, volume), { recursive: true });
    },
    identityOf(path) {
      const { dev, ino } = statSync(path, { bigint: true });
      return `${dev}:${ino}`;
    },
    async remove(podUid) {
      // A pod may have written a million files: no heartbeat waits for them.
      await rm(join(root, podUid), { recursive: true, force: true });
    },
  };
}

/** @throws Error for a path that leaves the volume, and of the file system */
function writeEach(directory: string, files: ReadonlyMap<string, VolumeFile>): void {
  mkdirSync(directory, { recursive: true });
  const wanted = new Set<string>();
  for (const [name, { bytes }] of files) {
    const path = join(directory, name);
    const own = normalize(relative(directory, path));
    if (own.startsWith('..') || own === '.') throw new Error(`invalid path: must not leave the volume: ${name}`);
    wanted.add(own);
    if (has(path, bytes)) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}${NEW}`, bytes);
    renameSync(`${path}${NEW}`, path);
  }
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isDirectory() && !wanted.has(relative(directory, path))) rmSync(path, { force: true });
  }
}

function has(path: string, bytes: Uint8Array): boolean {
  try {
    return readFileSync(path).equals(bytes);
  } catch {
    return false;
  }
}
