import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../kinds/types.ts';
import { markDeleted, podGraceSeconds } from './deletion.ts';
import { INT64_MAX } from './whole-number.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const aPod = (spec: object = {}, phase = 'Running'): KubeObject => ({
  metadata: { name: 'p', namespace: 'default', generation: 2 },
  spec: { nodeName: 'n', ...spec },
  status: { phase },
});

describe('the grace of a pod', () => {
  it.each([
    ['is 30 seconds where the pod names none', aPod(), undefined, 30],
    ['is its own', aPod({ terminationGracePeriodSeconds: 5 }), undefined, 5],
    ['is what the deletion asks for', aPod({ terminationGracePeriodSeconds: 5 }), 7, 7],
    ['is 1 second where it is negative', aPod(), -1, 1],
    ['is nothing for a pod that no node runs', aPod({ nodeName: '' }), 7, 0],
    ['is zero for a terminated pod', aPod({}, 'Failed'), 7, 0],
  ])('%s', (_, pod, asked, seconds) => {
    expect(podGraceSeconds(pod, asked)).toBe(seconds);
  });
});

describe('marking an object deleted', () => {
  it('stores the end of the grace period, as a new generation', () => {
    expect(markDeleted(aPod(), 30, NOW_MS).metadata).toMatchObject({
      deletionTimestamp: '2026-01-01T00:00:30Z',
      deletionGracePeriodSeconds: 30,
      generation: 3,
    });
  });

  it.each([1e12, 1e13, 2 ** 53, INT64_MAX, 1e300])(
    'ends within the calendar after a grace of %d seconds',
    (seconds) => {
      const grace = podGraceSeconds(aPod({ terminationGracePeriodSeconds: seconds }));
      expect(grace).toBe(Math.min(seconds, INT64_MAX));
      expect(markDeleted(aPod(), grace, NOW_MS).metadata.deletionTimestamp).toBe('9999-12-31T23:59:59Z');
    },
  );

  it('only ever shortens the grace', () => {
    const marked = markDeleted(aPod(), 30, NOW_MS);
    expect(markDeleted(marked, 30, NOW_MS + 5_000)).toBe(marked);
    expect(markDeleted(marked, 10, NOW_MS + 5_000).metadata.deletionTimestamp).toBe('2026-01-01T00:00:15Z');
  });
});
