/** SC: capacity and allocatable. SE: what is reserved. */
import { describe, expect, it } from 'vitest';
import { nodeResources, type ResourceInput, reservedOf } from '../../../agent/rules/node-resources.ts';
import type { NodeStatus } from '../../../shared/kinds/types.ts';
import { parseQuantity } from '../../../shared/kubernetes/quantity.ts';

const MACHINE = { cpuCores: 2, memoryBytes: 1_024, hugePages: {} };
const NOTHING_RESERVED = { systemReserved: {}, kubeReserved: {}, evictionHard: {} };

const amountOf = (text: string): number => {
  const parsed = parseQuantity(text);
  if (parsed.kind !== 'parsed') throw new Error(`${text}: ${parsed.message}`);
  return Number(parsed.quantity.nanos) / 1e9;
};
const values = (resources: Record<string, string>): Record<string, number> =>
  Object.fromEntries(Object.entries(resources).map(([name, text]) => [name, amountOf(text)]));

function resources(input: Partial<ResourceInput>, status?: NodeStatus) {
  const { capacity, allocatable } = nodeResources(status, {
    ...NOTHING_RESERVED,
    machine: MACHINE,
    rootFsBytes: undefined,
    maxPods: 110,
    podsPerCore: 0,
    ...input,
  });
  return { capacity: values(capacity), allocatable: values(allocatable) };
}

const USUAL = { cpu: 2, memory: 1_024, pods: 110 };
const both = (differing: Record<string, number>) => ({
  capacity: { ...USUAL, ...differing },
  allocatable: { ...USUAL, ...differing },
});

describe('SC capacity and allocatable', () => {
  it('SC-01 makes the whole capacity allocatable when nothing is reserved', () => {
    expect(resources({})).toEqual(both({}));
  });

  it('SC-03 bounds pods by maxPods where cores would allow more', () => {
    expect(resources({ maxPods: 10, podsPerCore: 6 })).toEqual(both({ pods: 10 }));
  });

  it('SC-05 subtracts huge pages from allocatable memory, and keeps a size set by others', () => {
    const found = resources({}, { capacity: { 'hugepages-test': '1' } });
    expect(found.capacity).toEqual({ ...USUAL, 'hugepages-test': 1 });
    expect(found.allocatable).toEqual({ ...USUAL, memory: 1_023, 'hugepages-test': 1 });
  });

  it('SC-07 reads ephemeral storage from the root file system', () => {
    expect(resources({ rootFsBytes: 5_000 })).toEqual(both({ 'ephemeral-storage': 5_000 }));
  });

  it('SC-09 keeps the resource of a removed device plug-in, with amount 0', () => {
    const devices = { capacity: {}, allocatable: {}, removed: ['inactive'] };
    expect(resources({ devices }, { capacity: { inactive: '1' } })).toEqual(both({ inactive: 0 }));
  });

  it('SC-11 ignores podsPerCore when the machine cannot be read', () => {
    expect(resources({ machine: undefined, podsPerCore: 1 })).toEqual(both({ cpu: 0, memory: 0 }));
  });

  it('SC-13 floors at zero where more is reserved than there is', () => {
    const found = resources({
      rootFsBytes: 3_000,
      systemReserved: { cpu: '40', 'ephemeral-storage': '1000' },
    });
    expect(found.allocatable).toEqual({ ...USUAL, cpu: 0, 'ephemeral-storage': 2_000 });
  });
});

const GI = 1_073_741_824;
const with8Gi = { machine: { ...MACHINE, memoryBytes: 8 * GI } };

describe('SE what is reserved', () => {
  it('SE-01 sums what the system, Kubernetes and hard eviction hold back of memory', () => {
    const found = resources({
      ...with8Gi,
      kubeReserved: { memory: '200Mi' },
      systemReserved: { memory: '300Mi' },
      evictionHard: { 'memory.available': { kind: 'quantity', value: 104_857_600 } },
    });
    expect(found.allocatable['memory']).toBe(7_960_788_992);
  });

  it('SE-03 computes 10% of 100Gi in 32-bit floats', () => {
    const evictionHard = { 'nodefs.available': { kind: 'percent', percent: 10 } } as const;
    const reserved = reservedOf({ 'ephemeral-storage': '100Gi' }, { ...NOTHING_RESERVED, evictionHard });
    expect(reserved['ephemeral-storage']?.nanos).toBe(10_737_418_400n * 1_000_000_000n);
    const found = resources({ rootFsBytes: 100 * GI, evictionHard });
    expect(found.allocatable['ephemeral-storage']).toBe(96_636_764_000);
  });

  it('SE-05 computes 5% of 8Gi in 32-bit floats', () => {
    const evictionHard = { 'memory.available': { kind: 'percent', percent: 5 } } as const;
    const reserved = reservedOf({ memory: '8Gi' }, { ...NOTHING_RESERVED, evictionHard });
    expect(reserved['memory']?.nanos).toBe(429_496_736n * 1_000_000_000n);
    expect(resources({ ...with8Gi, evictionHard }).allocatable['memory']).toBe(8_160_437_856);
  });

  it('SE-07 holds nothing back for imagefs', () => {
    const evictionHard = { 'imagefs.available': { kind: 'percent', percent: 15 } } as const;
    expect(resources({ ...with8Gi, evictionHard }).allocatable['memory']).toBe(8_589_934_592);
  });
});
