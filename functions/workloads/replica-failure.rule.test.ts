import { describe, expect, it } from 'vitest';
import { failureConditions, isSameConditions } from './replica-failure.rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

describe('the condition ReplicaFailure', () => {
  const failure = { reason: 'FailedCreate', message: 'quota' } as const;
  const made = {
    type: 'ReplicaFailure',
    status: 'True',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    ...failure,
  } as const;
  const other = { type: 'Other', status: 'False' } as const;

  it('is added once, stays as it is, and is removed without a failure', () => {
    expect(failureConditions(undefined, failure, NOW_MS)).toEqual([made]);
    expect(failureConditions([other], failure, NOW_MS)).toEqual([other, made]);
    const stored = { ...made, message: 'older', lastTransitionTime: '2025-01-01T00:00:00Z' };
    expect(failureConditions([stored, other], failure, NOW_MS)).toEqual([other, stored]);
    expect(failureConditions([stored, other], undefined, NOW_MS)).toEqual([other]);
    expect(failureConditions([stored], undefined, NOW_MS)).toBeUndefined();
    expect(failureConditions(undefined, undefined, NOW_MS)).toBeUndefined();
  });

  it.each([
    [undefined, [], true],
    [[made, other], [other, made], true],
    [[made], [{ ...made, message: 'y', lastTransitionTime: 'z' }], true],
    [[made], [{ ...made, reason: 'y' }], false],
    [[made], [{ ...made, status: 'False' as const }], false],
    [[made], [{ ...made, type: 'y' }], false],
    [[made], [made, other], false],
    [[made, other], [made], false],
  ])('%j is the same as %j: %s', (left, right, isSame) => {
    expect(isSameConditions(left, right)).toBe(isSame);
  });
});
