import { describe, expect, it } from 'vitest';
import { isExtendedResource, nodeResources, type ResourceInput, sameQuantity } from './node-resources.ts';

it.each([
  ['example.com/gpu', true],
  ['cpu', false],
  ['hugepages-2Mi', false],
  ['kubernetes.io/gpu', false],
  ['sub.kubernetes.io/gpu', false],
  ['requests.example.com/gpu', false],
  ['example.com/requests.', false],
  ['example.com/has blank', false],
  [`${'a'.repeat(253)}.com/gpu`, false],
  ['example.com/', false],
])('%s is an extended resource: %s', (name, is) => {
  expect(isExtendedResource(name)).toBe(is);
});

describe('the resources of a node', () => {
  const GIB = 2 ** 30;
  const input = {
    machine: { cpuCores: 4, memoryBytes: 8 * GIB, hugePages: { [2 ** 21]: 512 } },
    rootFsBytes: 100 * GIB,
    maxPods: 110,
    podsPerCore: 0,
    systemReserved: {},
    kubeReserved: {},
    evictionHard: {},
  } as unknown as ResourceInput;

  it('are those of the machine; pods may not use the memory of huge pages', () => {
    expect(nodeResources(undefined, input)).toEqual({
      capacity: { cpu: '4', memory: '8Gi', pods: '110', 'hugepages-2Mi': '1Gi', 'ephemeral-storage': '100Gi' },
      allocatable: { cpu: '4', memory: '7Gi', pods: '110', 'hugepages-2Mi': '1Gi', 'ephemeral-storage': '100Gi' },
    });
  });

  it('keep what other clients wrote, except for extended resources that the node lost', () => {
    const allocatable = { 'example.com/lost': '2', 'example.com/kept': '1', odd: '3', cpu: '1' };
    const capacity = { 'example.com/kept': '4', 'vendor.example/more': '5' };
    const found = nodeResources({ capacity, allocatable }, input);
    expect(found.capacity).toMatchObject({ ...capacity, cpu: '4' });
    expect(found.allocatable).toMatchObject({
      'example.com/kept': '4',
      'vendor.example/more': '5',
      odd: '3',
      cpu: '4',
    });
    expect(found.allocatable).not.toHaveProperty(['example.com/lost']);
  });

  it('have no more pods than its cores may run', () => {
    const podsOf = (podsPerCore: number) => nodeResources(undefined, { ...input, podsPerCore }).capacity['pods'];
    expect([podsOf(0), podsOf(10), podsOf(100)]).toEqual(['110', '40', '110']);
  });

  it('are unknown while the machine cannot be read', () => {
    const { capacity } = nodeResources({ capacity: { cpu: '4', x: '1' } }, { ...input, machine: undefined });
    expect(capacity).toEqual({ cpu: '0', memory: '0', pods: '110', x: '1' });
  });
});

it.each([
  ['1Gi', '1024Mi', true],
  ['1', '1000m', true],
  ['1', '2', false],
  ['x', 'x', true],
  ['x', 'y', false],
  ['x', '1', false],
  ['1', 'x', false],
  [undefined, undefined, true],
  [undefined, '0', false],
  ['0', undefined, false],
])('%s and %s are the same amount: %s', (left, right, isSame) => {
  expect(sameQuantity(left, right)).toBe(isSame);
});

it('the devices of a node are its resources, without those that were removed', () => {
  const devices = {
    capacity: { 'example.com/gpu': '4' },
    allocatable: { 'example.com/gpu': '3' },
    removed: ['example.com/nic'],
  };
  const input = { machine: undefined, maxPods: 5, systemReserved: {}, kubeReserved: {}, evictionHard: {}, devices };
  const machine = { cpuCores: 1, memoryBytes: 2 ** 30, hugePages: {} };
  expect(nodeResources(undefined, { ...input, machine } as unknown as ResourceInput)).toEqual({
    capacity: { cpu: '1', memory: '1Gi', pods: '5', 'example.com/gpu': '4', 'example.com/nic': '0' },
    allocatable: { cpu: '1', memory: '1Gi', pods: '5', 'example.com/gpu': '3', 'example.com/nic': '0' },
  });
  expect(nodeResources(undefined, input as unknown as ResourceInput).capacity).toEqual({
    cpu: '0',
    memory: '0',
    pods: '5',
  });
});

it('an amount of before that is no quantity is 0', () => {
  const input = { machine: undefined, maxPods: 5, systemReserved: {}, kubeReserved: {}, evictionHard: {} };
  const before = { capacity: { odd: 'many' }, allocatable: { odd: 'many' } };
  expect(nodeResources(before, input as unknown as ResourceInput).allocatable).toMatchObject({ odd: '0' });
});
