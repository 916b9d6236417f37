import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cpuList, linuxNuma } from './linux-numa.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nodekeeper-numa-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function node(id: number, files: Readonly<Record<string, string>>): void {
  const directory = join(root, `sys/devices/system/node/node${id}`);
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
}

describe('NUMA nodes', () => {
  it('have processors, memory and distances', async () => {
    node(0, { cpulist: '0-1,4\n', meminfo: 'Node 0 MemTotal:  1024 kB\n', distance: '10 21\n' });
    node(1, { cpulist: '2-3\n', meminfo: 'Node 1 MemTotal:  2048 kB\n', distance: '21 10\n' });
    const { nodes, distances } = await linuxNuma(root);
    expect(nodes).toEqual([
      { id: 0, cpus: [0, 1, 4], memoryBytes: 1_048_576 },
      { id: 1, cpus: [2, 3], memoryBytes: 2_097_152 },
    ]);
    expect(distances?.get(0)?.get(1)).toBe(21);
  });

  it('without a readable distance have none', async () => {
    node(0, { cpulist: '0\n', meminfo: '', distance: '' });
    expect((await linuxNuma(root)).distances).toBeUndefined();
  });

  it('are none where the system tells of none', async () => {
    expect(await linuxNuma(root)).toEqual({ nodes: [], distances: undefined });
  });

  it('may have no processors', () => {
    expect(cpuList('\n')).toEqual([]);
  });
});
