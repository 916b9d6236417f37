import { expect, it } from 'vitest';
import type { MachineFacts } from '../ports/machine.ts';
import { nodeInfoOf, wasRebooted } from './node-info.ts';

const facts: MachineFacts = {
  ...{ cpuCores: 1, memoryBytes: 2, swapBytes: 3, hugePages: {} },
  ...{ machineId: 'm', systemUuid: 's', bootId: 'b', kernelVersion: 'k', osImage: 'i' },
  ...{ operatingSystem: 'linux', architecture: 'arm64' },
};

it('a node has the facts of its machine, and the versions of its software', () => {
  const known = { containerRuntimeVersion: 'exec://1', kubeletVersion: 'v1', kubeProxyVersion: '' };
  expect(nodeInfoOf(undefined, { facts, runtimeVersion: 'exec://1', agentVersion: 'v1' })).toEqual({
    ...{ machineID: 'm', systemUUID: 's', bootID: 'b', kernelVersion: 'k', osImage: 'i' },
    ...{ operatingSystem: 'linux', architecture: 'arm64', swap: { capacity: 3 } },
    ...known,
  });
  const before = { machineID: 'before', other: 'x', containerRuntimeVersion: 'old', kubeProxyVersion: 'v0' };
  expect(nodeInfoOf(before, { facts: undefined, runtimeVersion: undefined, agentVersion: 'v1' })).toEqual({
    ...{ machineID: 'before', other: 'x' },
    ...{ ...known, containerRuntimeVersion: 'Unknown' },
  });
});

it('a machine without swap has no capacity of swap', () => {
  const known = { runtimeVersion: 'exec://1', agentVersion: 'v1' };
  const before = { swap: { capacity: 3 } };
  expect(nodeInfoOf(before, { facts: { ...facts, swapBytes: 0 }, ...known })).not.toHaveProperty('swap');
  expect(nodeInfoOf(before, { facts: undefined, ...known })).toMatchObject(before);
});

it('a machine has rebooted when both of its boots are known, and differ', () => {
  expect(wasRebooted('a', 'b')).toBe(true);
  for (const before of [undefined, '', 'b']) expect(wasRebooted(before, 'b')).toBe(false);
});
