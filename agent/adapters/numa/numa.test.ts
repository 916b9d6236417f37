import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { numbersOfList, readNuma } from './numa.ts';

describe('NUMA nodes of a machine', () => {
  let root: string;
  const write = (files: Readonly<Record<string, string>>): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
  };
  const node = (id: number, cpus: string, distance?: string) => ({
    [`sys/devices/system/node/node${id}/cpulist`]: `${cpus}\n`,
    [`sys/devices/system/node/node${id}/meminfo`]: `Node ${id} MemTotal:       ${1_000 + id} kB\nNode ${id} MemFree: 1 kB\n`,
    ...(distance === undefined ? {} : { [`sys/devices/system/node/node${id}/distance`]: `${distance}\n` }),
  });

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'nodekeeper-numa-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  it('reads cores, memory and distances, by id where ids have gaps', async () => {
    write({ 'sys/devices/system/node/online': '0,2\n', ...node(0, '0-1,4', '10 21'), ...node(2, '2-3', '20 10') });
    const { nodes, distances } = await readNuma(root);
    expect(nodes).toEqual([
      { id: 0, cpus: [0, 1, 4], memoryBytes: 1_024_000 },
      { id: 2, cpus: [2, 3], memoryBytes: 1_026_048 },
    ]);
    expect(distances?.get(0)?.get(2)).toBe(21);
    expect(distances?.get(2)?.get(0)).toBe(20);
  });

  it('reads a node with memory only, and reports that some distances are unknown', async () => {
    write({ 'sys/devices/system/node/online': '0-1', ...node(0, '0', '10 20'), ...node(1, '') });
    const { nodes, distances } = await readNuma(root);
    expect(nodes[1]?.cpus).toEqual([]);
    expect(distances).toBeUndefined();
  });

  it('reads a machine without NUMA as one node', async () => {
    write({ 'sys/devices/system/cpu/online': '0-3\n', 'proc/meminfo': 'MemTotal:  2000 kB\n' });
    expect(await readNuma(root)).toEqual({
      nodes: [{ id: 0, cpus: [0, 1, 2, 3], memoryBytes: 2_048_000 }],
      distances: new Map([[0, new Map([[0, 10]])]]),
    });
    write({ 'proc/meminfo': 'MemFree:  2000 kB\n' });
    await expect(readNuma(root)).rejects.toThrow('proc/meminfo has no MemTotal');
  });

  it('says what cannot be read', async () => {
    write({ 'sys/devices/system/node/online': '0' });
    await expect(readNuma(root)).rejects.toThrow('sys/devices/system/node/node0/cpulist cannot be read');
    expect(() => numbersOfList('0-99999999', 63)).toThrow('is no list of numbers');
  });

  it.runIf(process.platform === 'linux')('reads this machine', async () => {
    const { nodes } = await readNuma();
    expect(nodes.flatMap(({ cpus }) => cpus).length).toBeGreaterThan(0);
  });
});
