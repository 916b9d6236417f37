import { expect, it } from 'vitest';
import { type SwapNode, swapLimits } from './swap.ts';
import { swapIsOn, swapStartFault } from './swap-detection.ts';

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
const limitOf = (resources: object, given: Partial<SwapNode> = {}, more: object = {}) =>
  swapLimits({ ...node, ...given }, podOf(resources, more)).get('c');
const memory = (requests: string | undefined, limits?: string) => ({
  ...(requests === undefined ? {} : { requests: { memory: requests } }),
  ...(limits === undefined ? {} : { limits: { memory: limits } }),
});

it.each([
  ['in proportion to the request', memory('100Mi'), 50 * MIB],
  ['in proportion to the request, below its limit', memory('100Mi', '200Mi'), 50 * MIB],
  ['for a request of all memory', memory('1000Mi'), 500 * MIB],
  ['not for more than all memory', memory('1001Mi'), 0],
  ['in whole bytes', memory('3'), 1],
  ['in whole bytes of the request', memory('2500m'), 1],
  ['not for a request equal to the limit', { ...memory('100Mi', '100Mi'), requests: { memory: '100Mi', cpu: '1' } }, 0],
  ['not without request and limit of memory', { requests: { cpu: '1' } }, 0],
  ['none for a limit alone without a request', { limits: { memory: '100Mi' }, requests: { cpu: '1' } }, 0],
  ['not for a malformed request', memory('x'), 0],
])('a Burstable pod may swap %s', (_what, resources, bytes) => {
  expect(limitOf(resources)).toEqual({ kind: 'swapMax', bytes });
});

it.each([
  ['with the default', { swapBehavior: '' as const }, {}],
  ['with NoSwap', { swapBehavior: 'NoSwap' as const }, {}],
  ['when it is critical', {}, { priority: 2_000_000_000 }],
  ['on a node that reports no memory', { memoryBytes: 0 }, {}],
])('no pod may swap %s', (_what, given, more) => {
  expect(limitOf(memory('100Mi'), given, more)).toEqual({ kind: 'swapMax', bytes: 0 });
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

it('detects swap by the lines below the header', () => {
  const header = 'Filename\tType\tSize\n';
  const two = `${header}/dev/sda2 partition 1\n  /swap file 2\n`;
  expect([undefined, '', header, two].map(swapIsOn)).toEqual([false, false, false, true]);
  expect([swapStartFault(false, two), swapStartFault(true, undefined), swapStartFault(true, header)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(swapStartFault(true, two)).toMatch(/; \/proc\/swaps lists \/dev\/sda2, \/swap$/);
});
