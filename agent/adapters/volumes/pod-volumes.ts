/**
 * Volumes in directories of this machine: `<rootDirectory>/volumes/<pod uid>/<volume>`. Secrets and volumes of medium
 * Memory are in a directory of the same form on a file system in memory, and a link leads to them.
 *
 * Both directories belong to the agent. A container sees a volume through a mount, so it needs no right on them.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstat,
  lstatSync,
  opendir,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, normalize, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { PodVolumes, VolumeName, VolumeOptions } from '../../ports/pod-volumes.ts';
import { writeAtomically } from './atomic-files.ts';
import { setGroup } from './ownership.ts';
import { removeTree } from './remove-tree.ts';

const PRIVATE = 0o700;
/** The kubelet's mode for an emptyDir: every user may write. */
const EMPTY_DIRECTORY_MODE = 0o777;
const CREATED_DIRECTORY_MODE = 0o755;
const CREATED_FILE_MODE = 0o644;
const SUB_PATH_MODE = 0o750;
const BLOCK_BYTES = 512;
const ENTRIES_MAX = 1_000_000;
/** O_PATH of open(2): the file itself is not opened. */
const PATH_ONLY = 0o10000000;

const statOf = promisify(lstat);
const openDirectory = promisify(opendir);

export interface PodVolumesOptions {
  readonly rootDirectory: string;
  /** A directory on a file system in memory; undefined if the machine has none for the agent. */
  readonly memoryDirectory: string | undefined;
  /** A volume with more files is measured up to here. Default: a million. */
  readonly entriesMax?: number;
}

export function podVolumes({
  rootDirectory,
  memoryDirectory,
  entriesMax = ENTRIES_MAX,
}: PodVolumesOptions): PodVolumes {
  const root = join(rootDirectory, 'volumes');
  const pathOf = ({ podUid, volume }: VolumeName): string => join(root, podUid, volume);

  /** The directory of a volume, which exists afterwards. */
  function directoryOf(name: VolumeName, { inMemory }: VolumeOptions): string {
    const path = pathOf(name);
    makeDirectory(dirname(path), PRIVATE);
    if (!inMemory || memoryDirectory === undefined) {
      makeDirectory(path, CREATED_DIRECTORY_MODE);
      return path;
    }
    const target = join(memoryDirectory, name.podUid, name.volume);
    makeDirectory(dirname(target), PRIVATE);
    makeDirectory(target, CREATED_DIRECTORY_MODE);
    if (linkTarget(path) !== target) {
      rmSync(path, { recursive: true, force: true });
      symlinkSync(target, path);
    }
    return target;
  }

  return {
    writeFiles(name, files, options) {
      const directory = directoryOf(name, options);
      if (writeAtomically(directory, files)) setGroup(directory, options.groupId, 'readOnly');
    },
    makeEmptyDir(name, options) {
      const directory = directoryOf(name, options);
      if ((statSync(directory).mode & EMPTY_DIRECTORY_MODE) === EMPTY_DIRECTORY_MODE) return;
      setGroup(directory, options.groupId, 'writable', EMPTY_DIRECTORY_MODE);
    },
    linkTo(name, target) {
      if (!statSync(target).isDirectory()) throw new Error(`${target} is not a directory`);
      const path = pathOf(name);
      makeDirectory(dirname(path), PRIVATE);
      if (linkTarget(path) === target) return;
      rmSync(path, { recursive: true, force: true });
      symlinkSync(target, path);
    },
    linkedPath: (name) => linkTarget(pathOf(name)),
    checkHostPath,
    pathOf: (name) => realpathSync(pathOf(name)),
    subPathOf,
    identityOf,
    isFile: (path) => !statSync(path).isDirectory(),
    usedBytes: (name) => treeBytes(realPath(pathOf(name)), entriesMax),
    async remove(podUid) {
      if (memoryDirectory !== undefined) await removeTree(join(memoryDirectory, podUid));
      await removeTree(join(root, podUid));
    },
    podUids() {
      try {
        return readdirSync(root);
      } catch {
        return [];
      }
    },
  };
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

const realPath = (path: string): string => linkTarget(path) ?? path;

/** Source: upstream pkg/volume/hostpath/host_path.go (checkTypeInternal). */
function checkHostPath(path: string, type: string): void {
  if (normalize(path).split(sep).includes('..')) throw new Error(`invalid HostPath \`${path}\`: must not contain '..'`);
  const stat = statSync(path, { throwIfNoEntry: false });
  // A container runtime creates the directory of a volume without a type.
  if (stat === undefined && (type === '' || type === 'DirectoryOrCreate')) makeDirectory(path, CREATED_DIRECTORY_MODE);
  else if (stat === undefined && type === 'FileOrCreate') {
    // Stryker disable next-line ObjectLiteral,StringLiteral: a file that was created since the check is not emptied
    writeFileSync(path, '', { mode: CREATED_FILE_MODE, flag: 'a' });
  } else if (type !== '') checkType(path, type, stat);
}

function checkType(path: string, type: string, stat: Stats | undefined): void {
  const [isOfType, name] = {
    Directory: [stat?.isDirectory(), 'a directory'],
    DirectoryOrCreate: [stat?.isDirectory(), 'a directory'],
    File: [stat?.isFile(), 'a file'],
    FileOrCreate: [stat?.isFile(), 'a file'],
    Socket: [stat?.isSocket(), 'a socket file'],
    CharDevice: [stat?.isCharacterDevice(), 'a character device'],
    BlockDevice: [stat?.isBlockDevice(), 'a block device'],
  }[type] ?? [undefined, ''];
  if (name === '') throw new Error(`${type} is an invalid volume type`);
  if (isOfType !== true) throw new Error(`hostPath type check failed: ${path} is not ${name}`);
}

function subPathOf(volumePath: string, subPath: string): string {
  const base = realpathSync(volumePath);
  const path = resolve(base, subPath);
  const isWithin = (real: string): boolean => real === base || real.startsWith(`${base}${sep}`);
  if (!isWithin(path)) throw new Error(`subPath ${JSON.stringify(subPath)} is outside the volume`);
  let real: string;
  try {
    real = realpathSync(path);
  } catch {
    makeWithin(base, path, isWithin);
    real = realpathSync(path);
  }
  if (!isWithin(real)) throw new Error(`subPath ${JSON.stringify(subPath)} not within volume path ${base}`);
  return real;
}

function identityOf(path: string): string {
  const descriptor = openSync(path, PATH_ONLY | constants.O_NOFOLLOW);
  try {
    if (readlinkSync(`/proc/self/fd/${descriptor}`) !== path) throw new Error(`${path} changed while it was checked`);
    // Stryker disable next-line ObjectLiteral,BooleanLiteral: no test has an inode above 2^53
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return `${dev}:${ino}`;
  } finally {
    closeSync(descriptor);
  }
}

/** Creates the missing directories of a path one by one, and follows no link out of the volume. */
function makeWithin(base: string, path: string, isWithin: (real: string) => boolean): void {
  let parent = base;
  for (const name of path.slice(base.length + 1).split(sep)) {
    const next = join(parent, name);
    if (lstatSync(next, { throwIfNoEntry: false }) === undefined) makeDirectory(next, SUB_PATH_MODE);
    parent = realpathSync(next);
    if (!isWithin(parent)) throw new Error(`subPath ${path.slice(base.length + 1)} not within volume path ${base}`);
  }
}

/**
 * Blocks of a tree on the disk, as `du`. Other file systems mounted in it are included. A directory that the pod
 * removed meanwhile, or that is too deep for a path, counts without its content: the pod must not escape its limit by
 * it.
 */
async function treeBytes(directory: string, entriesMax: number): Promise<number> {
  let bytes = 0;
  let entries = 0;
  const counted = new Set<string>();
  const pending = [directory];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const opened = await openDirectory(next).catch((cause: unknown) => {
      if (next === directory) throw cause;
    });
    for await (const entry of opened ?? []) {
      entries += 1;
      if (entries > entriesMax) return bytes;
      const path = join(next, entry.name);
      const stat = await statOf(path).catch(() => undefined);
      if (stat === undefined) continue;
      // Stryker disable next-line ConditionalExpression,EqualityOperator,LogicalOperator: others are met once anyway
      if (stat.nlink > 1 && !stat.isDirectory()) {
        const inode = `${stat.dev}:${stat.ino}`;
        if (counted.has(inode)) continue;
        counted.add(inode);
      }
      bytes += stat.blocks * BLOCK_BYTES;
      // Stryker disable next-line ConditionalExpression: a file cannot be opened as a directory
      if (stat.isDirectory()) pending.push(path);
    }
  }
  return bytes;
}
