import { expect, it } from 'vitest';
import { type SwapNode, swapLimits } from './swap.ts';

const MIB = 2 ** 20;
const node: SwapNode = {
  cgroupVersion: 2,
  controllerPresent: true,
  swapBehavior: 'LimitedSwap',
  memoryBytes: 1_000 * MIB,
  swapBytes: 500 * MIB,
};
const podOf = (resources: object, more: object = {}) => ({
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', resources }], ...more },
});
const limitOf = (resources: object, given: Partial<SwapNode> = {}) =>
  swapLimits({ ...node, ...given }, podOf(resources)).get('c');
const memory = (request: string, limit?: string) => ({
  requests: { memory: request },
  ...(limit === undefined ? {} : { limits: { memory: limit } }),
});

it.each([
  ['in proportion to the request, below its limit', memory('100Mi', '200Mi'), 50 * MIB],
  ['not for more than all memory', memory('1001Mi'), 0],
  ['in whole bytes', memory('3'), 1],
  ['in whole bytes of the request', memory('2500m'), 1],
  ['not without request and limit of memory', { requests: { cpu: '1' } }, 0],
  ['not for a malformed request', memory('x'), 0],
])('a Burstable pod may swap %s', (_what, resources, bytes) => {
  expect(limitOf(resources)).toEqual({ kind: 'swapMax', bytes });
});

it('limits memory and swap together with cgroup v1, and nothing without a controller', () => {
  expect(limitOf(memory('100Mi', '200Mi'), { cgroupVersion: 1 })).toEqual({ kind: 'memoryAndSwap', bytes: 200 * MIB });
  expect(limitOf(memory('100Mi'), { cgroupVersion: 1 })).toEqual({ kind: 'memoryAndSwap', bytes: 0 });
  expect(limitOf(memory('100Mi'), { controllerPresent: false })).toEqual({ kind: 'unset' });
});

it('has limits of each container, init containers too', () => {
  const pod = podOf({}, { initContainers: [{ name: 'first' }] });
  expect([...swapLimits(node, pod).keys()]).toEqual(['first', 'c']);
});
