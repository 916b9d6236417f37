import { describe, expect, it } from 'vitest';
import { arrivalOf, type Fence, fenceItem, fenceOf, isCluster, isInState } from './move-rows.ts';

const FENCE: Fence = { moveId: 'm', to: 'https://there', sinceMs: 7, isReady: false };
const ENDPOINT = 'https://cluster.example';

describe('the fence of a move', () => {
  it.each([
    ['as it was raised', FENCE],
    ['when the destination may be open', { ...FENCE, isReady: true }],
    ['with the address of the cluster', { ...FENCE, address: { endpoint: ENDPOINT } }],
    ['with its authority', { ...FENCE, address: { endpoint: ENDPOINT, certificateAuthority: 'PEM' } }],
  ] as const)('is read %s', (_, fence) => {
    expect(fenceOf(fenceItem(fence))).toEqual(fence);
  });

  it('is absent without a row, and has no attribute for an address that is not known', () => {
    expect(fenceOf(undefined)).toBeUndefined();
    expect(Object.keys(fenceItem(FENCE))).toEqual(['moveId', 'to', 'sinceMs', 'isReady']);
    expect(Object.keys(fenceItem({ ...FENCE, address: { endpoint: ENDPOINT } }))).toContain('endpoint');
    expect(Object.keys(fenceItem({ ...FENCE, address: { endpoint: ENDPOINT } }))).not.toContain('certificateAuthority');
  });

  it.each([
    [undefined, undefined, true],
    [FENCE, undefined, false],
    [undefined, FENCE, false],
    [FENCE, { moveId: 'm', isReady: false }, true],
    [FENCE, { moveId: 'other', isReady: false }, false],
    [FENCE, { moveId: 'm', isReady: true }, false],
  ])('%j is what a change expects with %j: %s', (fence, expected, isSame) => {
    expect(isInState(fence, expected)).toBe(isSame);
  });
});

it.each([
  [undefined, undefined, true],
  ['copying', { moveId: 'm', phase: 'copying' }, false],
  ['ready', { moveId: 'm', phase: 'ready' }, false],
  ['open', { moveId: 'm', phase: 'open' }, true],
  ['abandoned', { moveId: 'm', phase: 'abandoned' }, false],
])('a store into which a move is %s is a cluster: %s', (phase, arrival, isOne) => {
  const read = arrivalOf(phase === undefined ? undefined : { pk: 'move', sk: 'destination', moveId: 'm', phase });
  expect(read).toEqual(arrival);
  expect(isCluster(read)).toBe(isOne);
});
