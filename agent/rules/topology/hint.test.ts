import { describe, expect, it } from 'vitest';
import { axesOf, type Hint, keepHint, type MergedHint, mergeHints, targetCount } from './hint.ts';
import { averageDistance, bitCount, closerMask, maskOf, narrowerMask, nodeIdsOf } from './mask.ts';

const hint = (mask: bigint | undefined, preferred = true): Hint => ({ mask, preferred });
const merged = (mask: bigint, preferred = false): MergedHint => ({ mask, preferred });
const any = hint(undefined);

describe('the axes', () => {
  it('are one per resource, and one for a provider without a preference', () => {
    const some = [hint(1n)];
    expect(axesOf([undefined, new Map(), new Map([['gpu', some]])])).toEqual([[any], [any], some]);
    const mixed = new Map<string, readonly Hint[] | undefined>([
      ['cpu', undefined],
      ['gpu', []],
      ['nic', some],
    ]);
    expect(axesOf([mixed])).toEqual([[any], [hint(undefined, false)], some]);
    expect(axesOf([])).toEqual([]);
  });

  it('have a target: the most of their fewest nodes', () => {
    expect(targetCount([[any]])).toBe(0);
    expect(targetCount([[hint(0b1n), any], [any], [hint(0b111n), hint(0b11n)]])).toBe(2);
  });
});

describe('the better of two hints', () => {
  const keep = (target: number, current: MergedHint | undefined, candidate: MergedHint) =>
    keepHint(target, current, candidate, narrowerMask);

  it.each([
    ['is no empty one', 1, merged(0b1n), merged(0n, true), 'current'],
    ['stays the preferred one', 1, merged(0b11n, true), merged(0b1n), 'current'],
    ['is the narrower one of preferred ones', 1, merged(0b11n, true), merged(0b100n, true), 'candidate'],
    ['above the target is the narrower one', 1, merged(0b111n), merged(0b11n), 'candidate'],
    ['at the target is none above it', 2, merged(0b110n), merged(0b111n), 'current'],
    ['below the target is one at the target', 2, merged(0b1n), merged(0b11n), 'candidate'],
    ['below the target is no narrower one', 3, merged(0b11n), merged(0b1n), 'current'],
  ])('%s', (_what, target, current, candidate, kept) => {
    expect(keep(target, current, candidate)).toBe(kept === 'current' ? current : candidate);
  });
});

it('merged hints are preferred if every part of one combination is', () => {
  const merge = (...axes: Hint[][]) => mergeHints(axes, 0b11n, narrowerMask);
  expect(merge([hint(0b1n, false)], [hint(0b1n)])).toEqual(merged(0b1n, false));
  expect(merge([hint(0b11n), hint(0b1n)], [hint(0b1n)])).toEqual(merged(0b1n, true));
});

describe('a set of nodes', () => {
  it('has the bits of its nodes', () => {
    expect([maskOf([]), maskOf([0, 2, 63, 2])]).toEqual([0n, 5n | (1n << 63n)]);
    expect(nodeIdsOf(maskOf([63, 2, 0]))).toEqual([0, 2, 63]);
    expect([0n, 1n, 0b1011n, 1n << 63n].map(bitCount)).toEqual([0, 1, 3, 1]);
  });

  it('is better with fewer nodes, also when they are higher or farther', () => {
    expect([narrowerMask(0b11n, 0b100n), narrowerMask(0b100n, 0b11n)]).toEqual([0b100n, 0b100n]);
    const distances = new Map([[2, new Map([[2, 10]])]]);
    expect(closerMask(0b11n, 0b100n, distances)).toBe(0b100n);
  });

  it('has no distance without nodes, and none between unknown ones', () => {
    expect([averageDistance(0n, new Map()), averageDistance(0b1000n, new Map())]).toEqual([0, 0]);
  });
});

it('below the target, a hint above it is no better', () => {
  expect(keepHint(2, merged(0b1n), merged(0b111n), narrowerMask)).toEqual(merged(0b1n));
});
