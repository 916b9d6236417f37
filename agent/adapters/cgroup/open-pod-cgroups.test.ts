import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { silentLog } from '../../../test/support/agent-api.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import type { AgentConfig } from '../../config.ts';
import { cgroupNode, openPodCgroups } from './open-pod-cgroups.ts';

const CONFIG = {
  cgroupRoot: '/nonexistent/nodekeeper',
  swapBehavior: 'LimitedSwap',
  cpuCfsQuota: true,
  podPidsMax: 100,
} as unknown as AgentConfig;
const FACTS = { cpuCores: 4, memoryBytes: 8_000, swapBytes: 2_000 };

it.each([true, false])(
  'groups follow the configuration and the machine, with the controller memory: %s',
  (hasMemory) => {
    expect(cgroupNode(CONFIG, FACTS, hasMemory)).toEqual({
      swap: {
        cgroupVersion: 2,
        controllerPresent: hasMemory,
        swapBehavior: 'LimitedSwap',
        memoryBytes: 8_000,
        swapBytes: 2_000,
      },
      enforceCpuLimits: true,
      podPidsMax: 100,
    });
  },
);

it('a machine without such a group enforces no limits, and says so', () => {
  const { cgroups, warning } = openPodCgroups(CONFIG, FACTS, undefined, silentLog);
  expect(cgroups).toBeUndefined();
  expect(warning).toMatch(/^limits of pods are not enforced by control groups \(.+\); memory limits apply/);
});

it.each([
  [5_000, ['8000\n', '5000\n']],
  [undefined, ['8000\n', '']],
])('a machine with process ids up to %s has groups with the limits of all its pods', (pidsMax, limits) => {
  const fileRoot = folderForTest();
  const group = join(fileRoot, 'sys/fs/cgroup/kubepods');
  mkdirSync(group, { recursive: true });
  mkdirSync(join(fileRoot, 'proc/self'), { recursive: true });
  writeFileSync(join(fileRoot, 'proc/self/mountinfo'), '30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n');
  for (const directory of [group, join(group, '..')]) {
    for (const file of ['cgroup.controllers', 'cgroup.subtree_control'])
      writeFileSync(join(directory, file), 'cpu cpuset memory pids\n');
  }
  for (const file of ['cgroup.procs', 'kubepods/memory.max', 'kubepods/pids.max'])
    writeFileSync(join(group, '..', file), '');
  const config = {
    ...CONFIG,
    cgroupRoot: '',
    rootDirectory: join(fileRoot, 'agent'),
    systemReserved: {},
    kubeReserved: {},
    enforceNodeAllocatable: true,
  } as unknown as AgentConfig;
  const { cgroups, warning } = openPodCgroups(config, FACTS, pidsMax, silentLog, fileRoot);
  expect(warning).toBeUndefined();
  cgroups?.applyNode([]);
  expect(['memory.max', 'pids.max'].map((file) => readFileSync(join(group, file), 'utf8'))).toEqual(limits);
  // Each run is recorded before its group is created.
  expect(() => cgroups?.prepare({ metadata: { uid: 'u' }, spec: { containers: [] } }, 'main', 0)).toThrow();
  expect(readdirSync(join(fileRoot, 'agent/cgroups'))).toEqual(['u']);
});
