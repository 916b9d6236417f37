/** What a pod uses: memory and processes by its groups or by /proc, storage by its directories. */
import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { defined } from '../../../shared/defined.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { PodUsage, StorageUsage } from '../../ports/pod-runtime.ts';
import type { PodCgroups } from '../cgroup/pod-cgroups.ts';
import type { ContainerRecord } from './pod-record.ts';
import type { ProcessTable } from './process-table.ts';

/** Entries between two breaks. Other work of the agent continues in them. */
const ENTRIES_AT_ONCE = 500;
/** A pod with more files is measured up to here. */
const ENTRIES_MAX = 1_000_000;
/** stat(2) counts blocks of this size. */
const BLOCK_BYTES = 512;

const NO_STORAGE: StorageUsage = { bytes: 0, inodes: 0 };

export interface MeasuredPod {
  readonly pod: KubePod;
  readonly containers: readonly ContainerRecord[];
  /** Has the output of its containers. */
  readonly directory: string;
  /** Has one directory per volume; it may not exist. */
  readonly volumesDirectory: string;
  readonly cgroups: PodCgroups | undefined;
  readonly table: ProcessTable;
}

/** @throws Error when /proc, a group or a directory cannot be read */
export async function podUsage(measured: MeasuredPod, withStorage: boolean): Promise<PodUsage> {
  const { pod, containers, directory, volumesDirectory, cgroups } = measured;
  const group = cgroups?.usage(pod);
  const residents = group?.memoryBytes === undefined ? residentsOf(measured) : undefined;
  const volumes = new Map<string, StorageUsage>();
  if (withStorage) {
    for (const name of namesIn(volumesDirectory)) volumes.set(name, await storageOf(join(volumesDirectory, name)));
  }
  const resident = residents === undefined ? undefined : sum([...residents.values()].map(({ bytes }) => bytes));
  const counted = residents === undefined ? undefined : sum([...residents.values()].map(({ processes }) => processes));
  return {
    ...defined({ memoryBytes: group?.memoryBytes ?? resident, processes: group?.processes ?? counted }),
    containers: await Promise.all(
      containers
        .filter(({ kind }) => kind !== 'init')
        .map(async ({ name, restartCount }) => ({
          name,
          ...defined({
            memoryBytes: cgroups?.containerMemory(pod, name, restartCount) ?? residents?.get(name)?.bytes,
          }),
          storage: withStorage ? await outputOf(directory, name) : NO_STORAGE,
        })),
    ),
    volumes,
  };
}

interface Residents {
  bytes: number;
  processes: number;
}

/** Resident memory by container, of the processes in its group or with its mark. */
function residentsOf({ pod, containers, cgroups, table }: MeasuredPod): ReadonlyMap<string, Residents> {
  const uid = pod.metadata.uid ?? '';
  const marked = table.marked().filter(({ mark }) => mark.startsWith(`${uid}/`));
  return new Map(
    containers.map(({ name, restartCount }) => {
      const pids = new Set(marked.filter(({ mark }) => mark.split('/')[1] === name).map(({ pid }) => pid));
      for (const pid of cgroups?.processesOf(pod, name, restartCount) ?? []) pids.add(pid);
      return [name, { bytes: sum([...pids].map((pid) => table.residentBytes(pid))), processes: pids.size }];
    }),
  );
}

/** The output of all kept runs of a container. */
async function outputOf(directory: string, container: string): Promise<StorageUsage> {
  const own = namesIn(directory).filter((file) => file.startsWith(`${container}.`));
  const parts = await Promise.all(own.map((file) => storageOf(join(directory, file))));
  return { bytes: sum(parts.map(({ bytes }) => bytes)), inodes: sum(parts.map(({ inodes }) => inodes)) };
}

/** The blocks and inodes of a tree. Does not follow links: their target may be anywhere. */
async function storageOf(root: string): Promise<StorageUsage> {
  const pending = [root];
  let bytes = 0;
  let inodes = 0;
  for (let path = pending.pop(); path !== undefined && inodes < ENTRIES_MAX; path = pending.pop()) {
    const found = statOf(path);
    if (found === undefined) continue;
    bytes += found.blocks * BLOCK_BYTES;
    inodes += 1;
    if (found.isDirectory()) for (const name of namesIn(path)) pending.push(join(path, name));
    if (inodes % ENTRIES_AT_ONCE === 0) await setImmediate();
  }
  return { bytes, inodes };
}

/** Undefined for a path that no longer exists, or is too long: a pod must not escape its limits by deep directories. */
function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    if (isUnreachable(cause)) return undefined;
    throw cause;
  }
}

/** ENOTDIR: the pod replaced a directory meanwhile. */
const isUnreachable = (cause: unknown): boolean =>
  ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes((cause as NodeJS.ErrnoException).code ?? '');

/** Empty for a directory that no longer exists. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (cause) {
    if (isUnreachable(cause)) return [];
    throw cause;
  }
}

const sum = (amounts: readonly number[]): number => amounts.reduce((total, amount) => total + amount, 0);
