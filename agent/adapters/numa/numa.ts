/**
 * NUMA nodes of this machine, from /sys/devices/system/node (Documentation/ABI/stable/sysfs-devices-node). A kernel
 * without NUMA has none: the machine is then one node.
 */
import { join } from 'node:path';
import type { NumaNode } from '../../rules/topology/ledger.ts';
import { type Distances, NODE_ID_MAX } from '../../rules/topology/mask.ts';
import { readFile } from '../system/files.ts';

export interface NumaMachine {
  readonly nodes: readonly NumaNode[];
  /** Undefined if a node does not report all of its distances. */
  readonly distances: Distances | undefined;
}

/** A file of /sys or /proc is missing or has an unexpected content. */
export class NumaUnreadableError extends Error {
  override readonly name = 'NumaUnreadableError';
}

/** More than any Linux supports. It bounds the result of a malformed file. */
const CPU_MAX = 65_535;

/** `0-3,8,10-11` */
export function numbersOfList(text: string, most: number): number[] {
  const numbers: number[] = [];
  for (const part of text.trim().split(',')) {
    if (part === '') continue;
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? first);
    if (match === null || last > most) throw new NumaUnreadableError(`${JSON.stringify(part)} is no list of numbers`);
    for (let each = first; each <= last; each += 1) numbers.push(each);
  }
  return numbers;
}

function memoryBytes(text: string, file: string): number {
  const kibibytes = /MemTotal:\s+(\d+) kB/.exec(text)?.[1];
  if (kibibytes === undefined) throw new NumaUnreadableError(`${file} has no MemTotal`);
  return Number(kibibytes) * 1_024;
}

/** @param root of the file system with /sys and /proc. Throws NumaUnreadableError. */
export async function readNuma(root = '/'): Promise<NumaMachine> {
  async function read(path: string): Promise<string> {
    try {
      return await readFile(join(root, path), 'utf8');
    } catch (cause) {
      throw new NumaUnreadableError(`${path} cannot be read`, { cause });
    }
  }
  const optional = (path: string): Promise<string | undefined> => read(path).catch(() => undefined);

  const online = await optional('sys/devices/system/node/online');
  if (online === undefined) {
    const cpus = numbersOfList(await read('sys/devices/system/cpu/online'), CPU_MAX);
    const bytes = memoryBytes(await read('proc/meminfo'), 'proc/meminfo');
    return { nodes: [{ id: 0, cpus, memoryBytes: bytes }], distances: new Map([[0, new Map([[0, 10]])]]) };
  }
  const ids = numbersOfList(online, NODE_ID_MAX);
  const nodes: NumaNode[] = [];
  const distances = new Map<number, ReadonlyMap<number, number>>();
  for (const id of ids) {
    const folder = `sys/devices/system/node/node${id}`;
    nodes.push({
      id,
      cpus: numbersOfList(await read(`${folder}/cpulist`), CPU_MAX),
      memoryBytes: memoryBytes(await read(`${folder}/meminfo`), `${folder}/meminfo`),
    });
    // One column per online node, in the order of their ids.
    const row = (await optional(`${folder}/distance`))?.trim().split(/\s+/).map(Number);
    if (row?.length === ids.length && row.every(Number.isInteger)) {
      distances.set(id, new Map(ids.map((other, column) => [other, row[column] ?? 0])));
    }
  }
  return { nodes, distances: distances.size === ids.length ? distances : undefined };
}
