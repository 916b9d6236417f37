import { describe, expect, it } from 'vitest';
import {
  failureAnnotations,
  failuresBefore,
  type IndexFailures,
  lastFailures,
  mayReplaceFromMs,
} from './failures.rule.ts';

const COUNTED = 'batch.kubernetes.io/job-index-failure-count';
const IGNORED = 'batch.kubernetes.io/job-index-ignored-failure-count';

describe('the failures that a pod carries', () => {
  it.each([
    [undefined, 0],
    ['', 0],
    ['3', 3],
    ['+3', 3],
    ['-1', 0],
    ['x', 0],
    ['1.5', 0],
    ['2147483647', 2_147_483_647],
    ['2147483648', 0],
  ])('%s is read as %i', (text, count) => {
    expect(failuresBefore(text === undefined ? undefined : { [COUNTED]: text, [IGNORED]: text })).toEqual({
      counted: count,
      ignored: count,
    });
  });

  it('are written, those that are ignored only if there are any', () => {
    expect(failureAnnotations({ counted: 0, ignored: 0 })).toEqual({ [COUNTED]: '0' });
    expect(failureAnnotations({ counted: 2, ignored: 1 })).toEqual({ [COUNTED]: '2', [IGNORED]: '1' });
  });
});

describe('the last failure of an index', () => {
  const pod = (name: string, counted: number, endedAtMs: number, index = 0, ignored = 0) => {
    const before: IndexFailures = { counted, ignored };
    return { name, index, endedAtMs, failuresBefore: before };
  };

  it.each([
    ['has most failures before it', pod('a', 0, 5), pod('b', 1, 5)],
    ['of those with as many ended last', pod('a', 1, 5), pod('b', 1, 6)],
    ['counts those that are ignored', pod('a', 1, 5), pod('b', 0, 5, 0, 2)],
  ])('%s', (_what, earlier, later) => {
    for (const pods of [
      [earlier, later],
      [later, earlier],
    ]) {
      expect(lastFailures(pods.map((each) => [each, false])).get(0)?.pod.name).toBe('b');
    }
  });

  it('is one of each index, with its own failure', () => {
    const last = lastFailures([
      [pod('a', 1, 5, 0, 3), false],
      [pod('b', 1, 5, 1, 3), true],
    ]);
    expect([...last.values()].map(({ failures }) => failures)).toEqual([
      { counted: 2, ignored: 3 },
      { counted: 1, ignored: 4 },
    ]);
  });

  it.each([
    [0, 0, 10_000],
    [1, 0, 20_000],
    [1, 1, 40_000],
    [9, 0, 600_000],
  ])('after %i counted and %i ignored ones is replaced %i ms later', (counted, ignored, waitMs) => {
    const last = lastFailures([[pod('a', counted, 1_000, 0, ignored), false]]).get(0);
    expect(mayReplaceFromMs(last)).toBe(1_000 + waitMs);
  });

  it('is none at first', () => {
    expect(mayReplaceFromMs(undefined)).toBe(Number.NEGATIVE_INFINITY);
  });
});
