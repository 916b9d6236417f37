import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { memoryCgroups, podCgroups } from '../../../test/support/memory-cgroups.ts';
import type { PodCgroups } from '../cgroup/pod-cgroups.ts';
import { type ContainerRecord, newRecord } from './pod-record.ts';
import { podUsage } from './pod-usage.ts';
import { linuxProcesses, type MarkedProcess } from './process-table.ts';

const pod: KubePod = {
  metadata: { name: 'p', uid: 'u1' },
  spec: {
    initContainers: [{ name: 'init' }, { name: 'side', restartPolicy: 'Always' }],
    containers: [{ name: 'main' }, { name: 'main2' }],
  },
};
let root: string;
const at = (...names: string[]): string => join(root, ...names);
beforeEach(() => {
  root = folderForTest();
});

function measured(marked: readonly MarkedProcess[], cgroups?: PodCgroups) {
  const containers: readonly ContainerRecord[] = newRecord(pod).containers;
  const table = { ...linuxProcesses, marked: () => [...marked], residentBytes: (pid: number) => pid * 100 };
  return { pod, containers, directory: at('output'), volumesDirectory: at('volumes'), cgroups, table };
}
function groups(controllers: readonly string[]) {
  const tree = memoryCgroups({ controllers });
  return { tree, cgroups: podCgroups(tree) };
}

describe('the memory of a pod', () => {
  const marked = [
    { pid: 1, mark: 'u1/main/0' },
    { pid: 2, mark: 'u1/main/1' },
    { pid: 3, mark: 'u1/main2/0' },
    { pid: 4, mark: 'u10/main/0' },
    { pid: 5, mark: 'u1/init/0' },
  ];

  it('is that of its marked processes without groups, by container', async () => {
    const usage = await podUsage(measured(marked), false);
    expect(usage).toEqual({
      memoryBytes: 1_100,
      processes: 4,
      containers: [
        { name: 'side', memoryBytes: 0, storage: { bytes: 0, inodes: 0 } },
        { name: 'main', memoryBytes: 300, storage: { bytes: 0, inodes: 0 } },
        { name: 'main2', memoryBytes: 300, storage: { bytes: 0, inodes: 0 } },
      ],
      volumes: new Map(),
    });
  });

  it('is that of its groups, if they count it', async () => {
    const { tree, cgroups } = groups(['memory', 'pids']);
    cgroups.prepare(pod, 'main', 0);
    const above = 'kubepods/besteffort/podu1';
    tree.set(above, 'memory.current', '5000');
    tree.set(above, 'pids.current', '9');
    tree.set(`${above}/main.0`, 'memory.current', '4000');
    const usage = await podUsage(measured(marked, cgroups), false);
    expect([usage.memoryBytes, usage.processes]).toEqual([5_000, 9]);
    expect(usage.containers.map(({ memoryBytes }) => memoryBytes)).toEqual([undefined, 4_000, undefined]);
  });

  it('counts a process in a group and with a mark once', async () => {
    const { tree, cgroups } = groups(['pids']);
    cgroups.prepare(pod, 'main', 0);
    tree.enter('kubepods/besteffort/podu1/main.0', 1);
    tree.enter('kubepods/besteffort/podu1/main.0', 7);
    const usage = await podUsage(measured(marked, cgroups), false);
    expect(usage.containers.map(({ memoryBytes }) => memoryBytes)).toEqual([0, 1_000, 300]);
    expect([usage.memoryBytes, usage.processes]).toEqual([1_800, 2]);
  });
});

describe('the storage of a pod', () => {
  const blocksOf = (...paths: string[]): number => paths.reduce((sum, path) => sum + statSync(path).blocks * 512, 0);

  it('is the output of its containers, all runs, and its volumes', async () => {
    mkdirSync(at('output'));
    mkdirSync(at('volumes/data/deep'), { recursive: true });
    for (const name of ['main.0.log', 'main.1.log', 'main2.0.log', 'record.json']) {
      writeFileSync(at('output', name), 'x'.repeat(10_000));
    }
    writeFileSync(at('volumes/data/deep/file'), 'x'.repeat(50_000));
    symlinkSync('/', at('volumes/data/link'));
    const { containers, volumes } = await podUsage(measured([]), true);
    expect(containers.map(({ storage }) => storage)).toEqual([
      { bytes: 0, inodes: 0 },
      { bytes: blocksOf(at('output/main.0.log'), at('output/main.1.log')), inodes: 2 },
      { bytes: blocksOf(at('output/main2.0.log')), inodes: 1 },
    ]);
    const data = ['', 'deep', 'deep/file'].map((name) => at('volumes/data', name));
    expect([...volumes.keys()]).toEqual(['data']);
    // A link is counted, and not followed.
    expect(volumes.get('data')?.inodes).toBe(4);
    expect(volumes.get('data')?.bytes).toBeGreaterThanOrEqual(blocksOf(...data));
    expect(volumes.get('data')?.bytes).toBeLessThan(blocksOf(...data) + 8_192);
  });

  it('is not measured unless it is asked for, and empty without directories', async () => {
    mkdirSync(at('volumes/data'), { recursive: true });
    expect((await podUsage(measured([]), false)).volumes.size).toBe(0);
    rmSync(at('volumes'), { recursive: true });
    writeFileSync(at('volumes'), 'no directory');
    const { volumes, containers } = await podUsage(measured([]), true);
    expect([volumes.size, containers[0]?.storage]).toEqual([0, { bytes: 0, inodes: 0 }]);
  });

  it('ends at paths that are too long, and fails for a directory that cannot be read', async () => {
    const name = 'd'.repeat(250);
    const leaf = at('volumes/deep', ...Array.from({ length: 8 }, () => name));
    mkdirSync(leaf, { recursive: true });
    mkdirSync(at('other', ...Array.from({ length: 14 }, () => name)), { recursive: true });
    renameSync(at('other'), join(leaf, name));
    const { volumes } = await podUsage(measured([]), true);
    const reachable = Math.ceil((4_096 - at('volumes/deep').length) / 251);
    expect(volumes.get('deep')?.inodes).toBe(reachable);
    execFileSync('rm', ['-rf', at('volumes')]);
    symlinkSync('volumes', at('volumes'));
    await expect(podUsage(measured([]), true)).rejects.toThrow('ELOOP');
  });

  it('counts more entries than it reads at once', async () => {
    mkdirSync(at('volumes/many'), { recursive: true });
    for (let index = 0; index < 600; index += 1) writeFileSync(at('volumes/many', `${index}`), '');
    const { volumes } = await podUsage(measured([]), true);
    expect(volumes.get('many')?.inodes).toBe(601);
  });
});
