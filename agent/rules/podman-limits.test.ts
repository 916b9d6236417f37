import { expect, it } from 'vitest';
import type { CpuPlacement } from '../ports/pod-runtime.ts';
import { ANYWHERE, type CgroupNode } from './cgroup-values.ts';
import { containersOf } from './pod-containers.ts';
import { podmanLimits, podmanPlacement } from './podman-limits.ts';

const GIB = 2 ** 30;
const node: CgroupNode = {
  swap: { cgroupVersion: 2, controllerPresent: true, swapBehavior: '', memoryBytes: 4 * GIB, swapBytes: GIB },
  enforceCpuLimits: true,
  podPidsMax: undefined,
};
const swapping: CgroupNode = { ...node, swap: { ...node.swap, swapBehavior: 'LimitedSwap' } };
const pinned: CpuPlacement = { cpus: [3, 1, 2], memoryNodes: [0], exclusive: true };

function limitsOf(resources: object, given = node, placement: CpuPlacement = ANYWHERE): string {
  const pod = { metadata: { name: 'p', uid: 'u' }, spec: { containers: [{ name: 'c', resources }] } };
  const [container] = containersOf(pod);
  if (container === undefined) throw new Error('no container');
  return podmanLimits(given, pod, container, placement).join(' ');
}

const REST = '--pids-limit -1 --oom-score-adj';

it.each([
  ['no limit', {}, node, `--cpu-shares 2 ${REST} 1000`],
  [
    'limits',
    { requests: { cpu: '250m', memory: '1Gi' }, limits: { cpu: '500m', memory: '2Gi' } },
    node,
    `--cpu-shares 256 --cpu-period 100000 --cpu-quota 50000 --memory ${2 * GIB} --memory-swap ${2 * GIB} ${REST} 750`,
  ],
  [
    'CPU limits that are not enforced',
    { limits: { cpu: '1' } },
    { ...node, enforceCpuLimits: false },
    `--cpu-shares 1024 ${REST} 999`,
  ],
  [
    'swap in proportion to the request',
    { requests: { memory: '1Gi' }, limits: { memory: '2Gi' } },
    swapping,
    `--cpu-shares 2 --memory ${2 * GIB} --memory-swap ${2 * GIB + GIB / 4} ${REST} 750`,
  ],
  ['swap without a limit of memory', { requests: { memory: '1Gi' } }, swapping, `--cpu-shares 2 ${REST} 750`],
  [
    'memory where no swap limit can be set',
    { limits: { memory: '2Gi' } },
    { ...node, swap: { ...node.swap, controllerPresent: false } },
    `--cpu-shares 2 --memory ${2 * GIB} ${REST} 999`,
  ],
  ['a limit of processes', {}, { ...node, podPidsMax: 100 }, '--cpu-shares 2 --pids-limit 100 --oom-score-adj 1000'],
])('has options for %s', (_what, resources, given, options) => {
  expect(limitsOf(resources, given)).toBe(options);
});

it('has no quota on exclusive CPUs, and one on others', () => {
  const resources = { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1', memory: '1Gi' } };
  expect(limitsOf(resources, node, pinned)).not.toContain('--cpu-quota');
  expect(limitsOf(resources, node, pinned)).toContain('--cpuset-cpus 1-3 --cpuset-mems 0');
  expect(limitsOf(resources, node, { ...pinned, exclusive: false })).toContain('--cpu-quota 100000');
});

it('places a container on some CPUs, on some memory, or anywhere', () => {
  expect(podmanPlacement(ANYWHERE)).toEqual([]);
  expect(podmanPlacement({ ...ANYWHERE, cpus: [0] })).toEqual(['--cpuset-cpus', '0']);
  expect(podmanPlacement({ ...ANYWHERE, memoryNodes: [1] })).toEqual(['--cpuset-mems', '1']);
});
