import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { isReleased, isTracked, TRACKING, withoutTracking } from './tracking.rule.ts';

describe('the finalizer of a Job', () => {
  const pod = (metadata: object): KubeObject => ({ metadata: { name: 'p', ...metadata } });

  it('is removed, and no other one', () => {
    expect(isTracked(pod({ finalizers: ['x', TRACKING] }))).toBe(true);
    expect(isTracked(pod({ finalizers: ['x'] }))).toBe(false);
    expect(isTracked(pod({}))).toBe(false);
    expect(withoutTracking(pod({ finalizers: ['x', TRACKING] }))).toEqual(pod({ finalizers: ['x'] }));
    expect(withoutTracking(pod({ finalizers: [TRACKING] }))).toEqual(pod({}));
  });

  it.each([
    [{ deletionTimestamp: 'x' }, true],
    [{ deletionTimestamp: 'x', deletionGracePeriodSeconds: 0, finalizers: [] }, true],
    [{ deletionTimestamp: 'x', deletionGracePeriodSeconds: 1 }, false],
    [{ deletionTimestamp: 'x', finalizers: ['y'] }, false],
    [{}, false],
  ])('is the last obstacle of %j: %s', (metadata, released) => {
    expect(isReleased(pod(metadata))).toBe(released);
  });
});
