/** NUMA nodes as Linux tells of them: /sys/devices/system/node (Linux, Documentation/ABI/stable/sysfs-devices-node). */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface NumaNode {
  readonly id: number;
  readonly cpus: readonly number[];
  readonly memoryBytes: number;
}

export interface NumaFacts {
  readonly nodes: readonly NumaNode[];
  /** From node to node; undefined when the machine does not say. */
  readonly distances: ReadonlyMap<number, ReadonlyMap<number, number>> | undefined;
}

const DIRECTORY = 'sys/devices/system/node';
const CPUS_MAX = 65_536;

/** `0-3,8` as numbers. */
export function cpuList(text: string): number[] {
  return text
    .trim()
    .split(',')
    .flatMap((part) => {
      const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part) ?? [];
      if (first === undefined) return [];
      const length = Math.min(CPUS_MAX, Math.max(0, Number(last) - Number(first) + 1));
      return Array.from({ length }, (_, index) => Number(first) + index);
    });
}

/** @param root in front of /sys; for tests */
export async function linuxNuma(root = '/'): Promise<NumaFacts> {
  const names = await readdir(join(root, DIRECTORY)).catch(() => [] as string[]);
  const ids = names
    .flatMap((name) => /^node(\d{1,4})$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((one, other) => one - other);
  const read = (id: number, file: string): Promise<string> =>
    readFile(join(root, DIRECTORY, `node${id}`, file), 'utf8').catch(() => '');
  const nodes = await Promise.all(
    ids.map(async (id) => ({
      id,
      cpus: cpuList(await read(id, 'cpulist')),
      memoryBytes: Number(/MemTotal:\s*(\d+) kB/.exec(await read(id, 'meminfo'))?.[1] ?? 0) * 1_024,
    })),
  );
  const rows = await Promise.all(
    ids.map(async (id): Promise<[number, ReadonlyMap<number, number>]> => {
      const figures = (await read(id, 'distance')).trim().split(/\s+/).map(Number);
      return [id, new Map(ids.map((other, index) => [other, figures[index] ?? Number.NaN]))];
    }),
  );
  const known = rows.every(([, row]) => [...row.values()].every((distance) => distance > 0));
  return { nodes, distances: known && rows.length > 0 ? new Map(rows) : undefined };
}
