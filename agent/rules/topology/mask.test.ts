import { describe, expect, it } from 'vitest';
import { averageDistance, bitCount, closerMask, type Distances, maskOf, narrowerMask, nodeIdsOf } from './mask.ts';

it.each([
  [[], 0n],
  [[0], 1n],
  [[1, 3], 10n],
  [[63], 1n << 63n],
])('the nodes %j are the mask %i', (ids, mask) => {
  expect(maskOf(ids)).toBe(mask);
  expect(nodeIdsOf(mask)).toEqual(ids);
  expect(bitCount(mask)).toBe(ids.length);
});

const [zero, one, both] = [maskOf([0]), maskOf([1]), maskOf([0, 1])];

it('the narrower mask has fewer nodes, or else the smaller number', () => {
  expect([narrowerMask(both, one), narrowerMask(one, both)]).toEqual([one, one]);
  expect([narrowerMask(zero, one), narrowerMask(one, zero)]).toEqual([zero, zero]);
  expect(narrowerMask(one, one)).toBe(one);
});

describe('distances', () => {
  const row = (...distances: readonly number[]) => new Map(distances.map((distance, id) => [id, distance]));
  const distances: Distances = new Map([
    [0, row(10, 30, 12, 20)],
    [1, row(30, 10, 20, 40)],
    [2, row(12, 20, 10, 20)],
    [3, row(20, 40, 20, 10)],
  ]);

  it('are a mean over all ordered pairs', () => {
    expect(averageDistance(maskOf([]), distances)).toBe(0);
    expect(averageDistance(zero, distances)).toBe(10);
    expect(averageDistance(both, distances)).toBe(20);
    expect(averageDistance(maskOf([0, 9]), distances)).toBe(2.5);
  });

  it('choose between masks of as many nodes', () => {
    const near = maskOf([0, 2]);
    expect([closerMask(both, near, distances), closerMask(near, both, distances)]).toEqual([near, near]);
    expect([closerMask(both, one, distances), closerMask(one, both, distances)]).toEqual([one, one]);
    // As near as each other.
    const [low, high] = [maskOf([0, 3]), maskOf([2, 3])];
    expect([closerMask(low, high, distances), closerMask(high, low, distances)]).toEqual([low, low]);
  });
});
