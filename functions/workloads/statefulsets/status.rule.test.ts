import { describe, expect, it } from 'vitest';
import type { KubeStatefulSet } from '../workload-types.ts';
import type { OrdinalPod } from './rule.ts';
import { isStatefulSetSettled, statefulSetStatus } from './status.rule.ts';

type State = OrdinalPod['state'];
const pod = (state: State, revision = 'r2', isDeleting = false) =>
  ({ state, revision, isDeleting }) as unknown as OrdinalPod;
const set = (status: KubeStatefulSet['status'], spec: KubeStatefulSet['spec'] = {}): KubeStatefulSet =>
  ({ metadata: { name: 'db', generation: 4 }, spec: { replicas: 2, ...spec }, status }) as KubeStatefulSet;
const REVISIONS = { current: 'r1', update: 'r2' };
const statusOf = (of: KubeStatefulSet, pods: readonly OrdinalPod[]) =>
  statefulSetStatus(of, pods, REVISIONS, { failure: undefined, nowMs: 0 });

describe('the status of a StatefulSet', () => {
  it('counts pods by state and revision, without deleted ones in the revisions', () => {
    const pods = [pod('available', 'r1'), pod('ready', 'r2'), pod('available', 'r1', true)];
    expect(statusOf(set({}), pods)).toMatchObject({
      replicas: 3,
      availableReplicas: 2,
      readyReplicas: 3,
      currentReplicas: 1,
      updatedReplicas: 1,
      currentRevision: 'r1',
      updateRevision: 'r2',
      observedGeneration: 4,
      collisionCount: 0,
    });
  });

  it('completes the rolling update when all wanted pods are ready and updated, but not OnDelete', () => {
    const pods = [pod('ready'), pod('available')];
    expect(statusOf(set({}), pods)).toMatchObject({ currentRevision: 'r2', currentReplicas: 2 });
    for (const others of [[pod('ready')], [...pods, pod('ready')], [pod('ready'), pod('available', 'r1')]])
      expect(statusOf(set({}), others)).toMatchObject({ currentRevision: 'r1' });
    expect(statusOf(set({}, { updateStrategy: { type: 'OnDelete' } }), pods)).toMatchObject({ currentRevision: 'r1' });
  });

  it('keeps the count of collisions, and is written when a single field differs', () => {
    const pods = [pod('ready'), pod('available', 'r1')];
    const stored = statusOf(set({ collisionCount: 3 }), pods)!;
    expect(stored.collisionCount).toBe(3);
    expect(statusOf(set(stored), pods)).toBeUndefined();
    for (const field of [
      'replicas',
      'availableReplicas',
      'readyReplicas',
      'currentReplicas',
      'updatedReplicas',
    ] as const)
      expect([field, statusOf(set({ ...stored, [field]: 9 }), pods)?.[field]]).toEqual([field, stored[field]]);
    expect(statusOf(set({ ...stored, observedGeneration: 3 }), pods)).toEqual(stored);
    for (const field of ['currentRevision', 'updateRevision'] as const)
      expect([field, statusOf(set({ ...stored, [field]: 'r0' }), pods)]).toEqual([field, stored]);
    const conditions = [{ type: 'ReplicaFailure', status: 'True' as const }];
    expect(statusOf(set({ ...stored, conditions }), pods)).toBeDefined();
  });
});

describe('a StatefulSet that a sweep leaves alone', () => {
  const settled = { replicas: 2, observedGeneration: 4, currentRevision: 'r', updateRevision: 'r' };
  it('was observed, has its pods, and no update under way', () => {
    expect(isStatefulSetSettled(set(settled))).toBe(true);
    expect(isStatefulSetSettled(set({ ...settled, observedGeneration: 3 }))).toBe(false);
    expect(isStatefulSetSettled(set({ ...settled, replicas: 1 }))).toBe(false);
    const deleted = set(settled);
    deleted.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    expect(isStatefulSetSettled(deleted)).toBe(false);
    const rolling = { ...settled, updateRevision: 'next', updatedReplicas: 1 };
    const partition = (at: number) => ({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: at } } });
    expect(isStatefulSetSettled(set(rolling))).toBe(false);
    expect(isStatefulSetSettled(set({ ...rolling, updatedReplicas: 2 }))).toBe(true);
    expect([0, 1].map((at) => isStatefulSetSettled(set(rolling, partition(at))))).toEqual([false, true]);
    expect(isStatefulSetSettled(set(rolling, { updateStrategy: { type: 'OnDelete' } }))).toBe(true);
  });
});
