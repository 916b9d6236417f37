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
    expect(targetCount([])).toBe(0);
    expect(targetCount([[any]])).toBe(0);
    expect(
      targetCount([
        [hint(0b11n), hint(0b111n)],
        [hint(0b1n), any],
      ]),
    ).toBe(2);
    expect(targetCount([[hint(0b1n)], [any], [hint(0b111n)]])).toBe(3);
  });
});

describe('the better of two hints', () => {
  const keep = (target: number, current: MergedHint | undefined, candidate: MergedHint) =>
    keepHint(target, current, candidate, narrowerMask);

  it.each([
    ['is no empty one', 1, merged(0b1n), merged(0n, true), 'current'],
    ['is the first one', 1, undefined, merged(0b1n), 'candidate'],
    ['is the preferred one', 1, merged(0b1n), merged(0b11n, true), 'candidate'],
    ['stays the preferred one', 1, merged(0b11n, true), merged(0b1n), 'current'],
    ['is the narrower one of preferred ones', 1, merged(0b11n, true), merged(0b100n, true), 'candidate'],
    ['above the target is the narrower one', 1, merged(0b111n), merged(0b11n), 'candidate'],
    ['at the target is another one at the target', 2, merged(0b110n), merged(0b11n), 'candidate'],
    ['at the target is none below it', 2, merged(0b11n), merged(0b1n), 'current'],
    ['at the target is none above it', 2, merged(0b110n), merged(0b111n), 'current'],
    ['below the target is none above it', 2, merged(0b1n), merged(0b111n), 'current'],
    ['below the target is the wider one', 3, merged(0b1n), merged(0b11n), 'candidate'],
    ['below the target is one at the target', 2, merged(0b1n), merged(0b11n), 'candidate'],
    ['below the target is no narrower one', 3, merged(0b11n), merged(0b1n), 'current'],
    ['below the target is the better one of the same width', 3, merged(0b10n), merged(0b1n), 'candidate'],
  ])('%s', (_what, target, current, candidate, kept) => {
    expect(keep(target, current, candidate)).toBe(kept === 'current' ? current : candidate);
  });
});

describe('merged hints', () => {
  const merge = (...axes: Hint[][]) => mergeHints(axes, 0b11n, narrowerMask);

  it('are the nodes that all axes share', () => {
    expect(merge()).toEqual(merged(0b11n, true));
    expect(merge([hint(0b1n), hint(0b10n)], [hint(0b10n)])).toEqual(merged(0b10n, true));
    expect(merge([any], [hint(0b1n)])).toEqual(merged(0b1n, true));
  });

  it('are preferred if every part is, on the same nodes', () => {
    expect(merge([hint(0b1n, false)], [hint(0b1n)])).toEqual(merged(0b1n, false));
    expect(merge([hint(undefined, false)], [hint(0b1n)])).toEqual(merged(0b1n, false));
    expect(merge([hint(0b11n)], [hint(0b1n)])).toEqual(merged(0b1n, false));
    expect(merge([hint(0b11n)], [any], [hint(0b1n)], [hint(0b11n)])).toEqual(merged(0b1n, false));
  });

  it('are all nodes, not preferred, if nothing is shared', () => {
    expect(merge([hint(0b1n)], [hint(0b10n)])).toEqual(merged(0b11n, false));
    expect(merge([])).toEqual(merged(0b11n, false));
  });
});

describe('a set of nodes', () => {
  it('has the bits of its nodes', () => {
    expect([maskOf([]), maskOf([0, 2, 63, 2])]).toEqual([0n, 5n | (1n << 63n)]);
    expect(nodeIdsOf(maskOf([63, 2, 0]))).toEqual([0, 2, 63]);
    expect([0n, 1n, 0b1011n, 1n << 63n].map(bitCount)).toEqual([0, 1, 3, 1]);
  });

  it('is narrower with fewer nodes, or with lower ones', () => {
    expect([narrowerMask(0b11n, 0b100n), narrowerMask(0b100n, 0b11n)]).toEqual([0b100n, 0b100n]);
    expect([narrowerMask(0b10n, 0b1n), narrowerMask(0b1n, 0b10n), narrowerMask(1n, 1n)]).toEqual([1n, 1n, 1n]);
  });

  it('is closer with fewer nodes, a smaller distance, or lower ones', () => {
    const far = new Map([
      [
        0,
        new Map([
          [0, 10],
          [1, 30],
          [2, 20],
        ]),
      ],
      [
        1,
        new Map([
          [0, 30],
          [1, 10],
          [2, 30],
        ]),
      ],
      [
        2,
        new Map([
          [0, 20],
          [1, 30],
          [2, 10],
        ]),
      ],
    ]);
    expect(averageDistance(0b11n, far)).toBe(20);
    expect([averageDistance(0n, far), averageDistance(0b1000n, far), averageDistance(1n, far)]).toEqual([0, 0, 10]);
    expect([closerMask(0b11n, 0b101n, far), closerMask(0b101n, 0b11n, far)]).toEqual([0b101n, 0b101n]);
    expect([closerMask(0b110n, 0b11n, far), closerMask(0b11n, 0b110n, far)]).toEqual([0b11n, 0b11n]);
    expect([closerMask(0b11n, 0b100n, far), closerMask(0b100n, 0b11n, far)]).toEqual([0b100n, 0b100n]);
  });
});
