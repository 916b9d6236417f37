import { describe, expect, it } from 'vitest';
import type { KubeDeployment, KubeReplicaSet, WorkloadCondition } from '../workload-types.ts';
import {
  creationFailedStatus,
  deploymentCounts,
  hasProgressDeadline,
  isComplete,
  pauseCondition,
  rolloutStatus,
} from './status.rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const NOW = '2026-01-01T00:00:00Z';
const BEFORE = '2025-12-31T23:59:00Z';
const AT = { nowMs: NOW_MS, isHeld: false, lastHoldEndedMs: 0 };

const deployment = (spec: object = {}, more: object = {}): KubeDeployment => ({
  metadata: { name: 'web', generation: 3 },
  spec: { replicas: 4, progressDeadlineSeconds: 60, strategy: { rollingUpdate: { maxUnavailable: 1 } }, ...spec },
  ...more,
});
const set = (name: string, size: number, counts: object): KubeReplicaSet => ({
  metadata: { name },
  spec: { replicas: size },
  status: counts,
});
const full = (name = 'new') => set(name, 4, { replicas: 4, readyReplicas: 4, availableReplicas: 4 });
const conditionOf = (status: { readonly conditions?: readonly WorkloadCondition[] }, type = 'Progressing') =>
  (status.conditions ?? []).find((each) => each.type === type);
const progressing = (reason: string, more: object = {}) => ({
  ...{ type: 'Progressing', status: 'True', reason, message: 'm', lastUpdateTime: BEFORE, lastTransitionTime: BEFORE },
  ...more,
});

describe('the counts of a Deployment', () => {
  it('are sums over its sets, without zeros', () => {
    const newSet = set('new', 3, { replicas: 2, readyReplicas: 1, availableReplicas: 1 });
    const oldSets = [set('old', 2, { replicas: 2, readyReplicas: 2, availableReplicas: 1 }), set('older', 0, {})];
    const stored = deployment({}, { status: { collisionCount: 5 } });
    const { conditions: _, ...counts } = deploymentCounts(stored, { newSet, oldSets }, NOW_MS);
    expect(counts).toEqual({
      ...{ replicas: 4, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 2, unavailableReplicas: 3 },
      ...{ observedGeneration: 3, collisionCount: 5 },
    });
    const empty = deploymentCounts({ metadata: { name: 'web' } }, { newSet: undefined, oldSets: [] }, NOW_MS);
    expect(Object.keys(empty)).toEqual(['conditions']);
    const surplus = deploymentCounts(
      deployment(),
      { newSet: set('n', 0, { availableReplicas: 2 }), oldSets: [] },
      NOW_MS,
    );
    expect(surplus.unavailableReplicas).toBeUndefined();
  });

  it.each([
    [3, 'True', 'MinimumReplicasAvailable'],
    [2, 'False', 'MinimumReplicasUnavailable'],
  ])('with %i of 4 replicas available have the condition Available: %s', (available, status, reason) => {
    const newSet = set('new', 4, { availableReplicas: available });
    const counts = deploymentCounts(deployment(), { newSet, oldSets: [] }, NOW_MS);
    expect(conditionOf(counts, 'Available')).toMatchObject({ status, reason, lastTransitionTime: NOW });
  });

  it('copy ReplicaFailure from a set, the new one first, until no set has it', () => {
    const failing = (reason: string) => ({
      conditions: [{ type: 'Other' }, { type: 'ReplicaFailure', status: 'True', reason, message: 'm' }],
    });
    const [newSet, old] = [set('new', 1, failing('New')), set('old', 1, failing('Old'))];
    const counts = (
      sets: { newSet: KubeReplicaSet | undefined; oldSets: KubeReplicaSet[] },
      conditions: object[] = [],
    ) => deploymentCounts(deployment({}, { status: { conditions } }), sets, NOW_MS);
    expect(conditionOf(counts({ newSet, oldSets: [old] }), 'ReplicaFailure')).toMatchObject({ reason: 'New' });
    expect(conditionOf(counts({ newSet: undefined, oldSets: [old] }), 'ReplicaFailure')).toMatchObject({
      ...{ status: 'True', reason: 'Old', message: 'm' },
    });
    const stored = [{ type: 'ReplicaFailure', status: 'True', reason: 'Old' }, progressing('X')];
    const after = counts({ newSet: full(), oldSets: [] }, stored);
    expect((after.conditions ?? []).map(({ type }) => type)).toEqual(['Progressing', 'Available']);
  });

  it('keep a condition of the same status and reason as it is stored', () => {
    const stored = {
      ...{ type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message: 'older' },
      ...{ lastUpdateTime: BEFORE, lastTransitionTime: BEFORE },
    };
    const counts = (condition: object) =>
      conditionOf(
        deploymentCounts(
          deployment({}, { status: { conditions: [condition] } }),
          { newSet: full(), oldSets: [] },
          NOW_MS,
        ),
        'Available',
      );
    expect(counts(stored)).toEqual(stored);
    expect(counts({ ...stored, reason: 'x' })).toMatchObject({ lastUpdateTime: NOW, lastTransitionTime: BEFORE });
    expect(counts({ ...stored, status: 'False' })).toMatchObject({ lastUpdateTime: NOW, lastTransitionTime: NOW });
  });
});

describe('a rollout', () => {
  const rollout = (
    stored: object | undefined,
    newSet: KubeReplicaSet | undefined,
    more: object = {},
    spec: object = {},
  ) => {
    const conditions = stored === undefined ? [] : [stored];
    return rolloutStatus(
      deployment(spec, {
        status: { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions },
      }),
      { newSet, oldSets: [] },
      { ...AT, ...more },
    );
  };
  const stuck = set('new', 4, { replicas: 1, readyReplicas: 1, availableReplicas: 1 });

  it('is complete when all replicas are updated, available and the only ones', () => {
    const { status, lookAgainAtMs } = rollout(progressing('ReplicaSetUpdated'), full());
    expect(conditionOf(status)).toMatchObject({
      ...{ status: 'True', reason: 'NewReplicaSetAvailable', lastUpdateTime: NOW, lastTransitionTime: BEFORE },
      message: 'ReplicaSet "new" has successfully progressed.',
    });
    expect(lookAgainAtMs).toBeUndefined();
    const counts = { replicas: 4, updatedReplicas: 4, availableReplicas: 4, observedGeneration: 3 };
    expect(isComplete(deployment(), counts)).toBe(true);
    for (const field of ['replicas', 'updatedReplicas', 'availableReplicas'] as const) {
      expect(isComplete(deployment(), { ...counts, [field]: 3 })).toBe(false);
      expect(isComplete(deployment(), { ...counts, [field]: undefined } as never)).toBe(false);
    }
    expect(isComplete(deployment(), { ...counts, observedGeneration: 2 })).toBe(false);
    expect(isComplete({ metadata: { name: 'web' } }, { replicas: 1, updatedReplicas: 1, availableReplicas: 1 })).toBe(
      true,
    );
    expect(isComplete(deployment({ replicas: 0 }), { observedGeneration: 3 })).toBe(true);
  });

  it.each([
    ['updated', { replicas: 2, readyReplicas: 1, availableReplicas: 1 }],
    ['ready', { replicas: 1, readyReplicas: 2, availableReplicas: 1 }],
    ['available', { replicas: 1, readyReplicas: 1, availableReplicas: 2 }],
  ])('progresses with one more %s replica', (_, counts) => {
    const { status } = rollout(undefined, set('new', 4, counts));
    expect(conditionOf(status)).toMatchObject({
      ...{ status: 'True', reason: 'ReplicaSetUpdated', message: 'ReplicaSet "new" is progressing.' },
    });
  });

  it('progresses with one old replica less, and not with the same counts', () => {
    const before = {
      replicas: 3,
      updatedReplicas: 1,
      readyReplicas: 9,
      availableReplicas: 9,
      conditions: [progressing('X')],
    };
    const reason = (old: number) =>
      conditionOf(
        rolloutStatus(
          deployment({}, { status: before }),
          { newSet: set('new', 4, { replicas: 1 }), oldSets: [set('old', 2, { replicas: old })] },
          { ...AT, nowMs: NOW_MS - 60_000 },
        ).status,
      )?.reason;
    expect([reason(1), reason(2)]).toEqual(['ReplicaSetUpdated', 'X']);
  });

  it.each([
    [60_000, 0, 'X'],
    [60_001, 0, 'ProgressDeadlineExceeded'],
    [60_001, 1, 'X'],
    [60_002, 1, 'ProgressDeadlineExceeded'],
  ])(
    'has timed out %i ms after its last progress, and after a hold that ended %i ms later: %s',
    (laterMs, heldMs, reason) => {
      const updatedMs = Date.parse(BEFORE);
      const { status } = rollout(progressing('X'), stuck, {
        nowMs: updatedMs + laterMs,
        lastHoldEndedMs: updatedMs + heldMs,
      });
      expect(conditionOf(status)?.reason).toBe(reason);
    },
  );

  it('has not timed out while it is held, without a time, or without a condition', () => {
    const late = { nowMs: NOW_MS + 3_600_000 };
    const reason = (stored: object | undefined, more: object = {}) =>
      conditionOf(rollout(stored, stuck, { ...late, ...more }).status)?.reason;
    expect(reason(progressing('X'))).toBe('ProgressDeadlineExceeded');
    expect(reason(progressing('X'), { isHeld: true })).toBe('X');
    expect(reason(progressing('X', { lastUpdateTime: undefined }))).toBe('X');
    expect(reason(undefined)).toBeUndefined();
    expect(reason(progressing('ProgressDeadlineExceeded', { lastUpdateTime: undefined, status: 'False' }))).toBe(
      'ProgressDeadlineExceeded',
    );
    expect(conditionOf(rollout(progressing('X'), undefined, late).status)?.message).toBe(
      'Deployment "web" has timed out progressing.',
    );
  });

  it('that was complete stays so until an old set has a pod', () => {
    const done = progressing('NewReplicaSetAvailable');
    expect(conditionOf(rollout(done, stuck, { nowMs: NOW_MS + 3_600_000 }).status)).toEqual(done);
    const oldSets = [set('old', 1, { replicas: 1 })];
    const { status } = rolloutStatus(
      deployment({}, { status: { replicas: 9, updatedReplicas: 1, conditions: [done] } }),
      { newSet: stuck, oldSets },
      AT,
    );
    expect(conditionOf(status)?.reason).toBe('ReplicaSetUpdated');
  });

  it.each([
    ['a second after its deadline', progressing('X'), NOW_MS - 30_000, 0, NOW_MS + 1_000],
    ['counted from the end of a hold', progressing('X'), NOW_MS - 30_000, NOW_MS - 40_000, NOW_MS + 21_000],
    ['at least a second later', progressing('X'), NOW_MS + 500, 0, NOW_MS + 1_500],
    ['never after the deadline', progressing('ProgressDeadlineExceeded'), NOW_MS, 0, undefined],
    ['never without a time', progressing('X', { lastUpdateTime: undefined }), NOW_MS, 0, undefined],
  ])('is evaluated again %s', (_, stored, nowMs, lastHoldEndedMs, expected) => {
    expect(rollout(stored, stuck, { nowMs, lastHoldEndedMs, isHeld: true }).lookAgainAtMs).toBe(expected);
  });

  it('without a deadline has no condition of its progress', () => {
    for (const progressDeadlineSeconds of [undefined, 2 ** 31 - 1]) {
      const { status, lookAgainAtMs } = rollout(progressing('X'), stuck, {}, { progressDeadlineSeconds });
      expect((status.conditions ?? []).map(({ type }) => type)).toEqual(['Available']);
      expect(lookAgainAtMs).toBeUndefined();
      expect(hasProgressDeadline(deployment({ progressDeadlineSeconds }))).toBe(false);
    }
    expect(hasProgressDeadline({ metadata: { name: 'web' } })).toBe(false);
    expect(hasProgressDeadline(deployment())).toBe(true);
  });
});

describe('a pause', () => {
  const paused = (isPaused: boolean, stored: object | undefined, spec: object = {}) =>
    pauseCondition(
      deployment({ paused: isPaused, ...spec }, { status: { conditions: stored === undefined ? [] : [stored] } }),
      NOW_MS,
    );

  it('begins and ends with a condition, once', () => {
    const begun = {
      type: 'Progressing',
      status: 'Unknown',
      reason: 'DeploymentPaused',
      message: 'Deployment is paused',
    };
    expect(paused(true, undefined)).toEqual({ ...begun, lastUpdateTime: NOW, lastTransitionTime: NOW });
    expect(paused(true, progressing('X'))).toMatchObject(begun);
    expect(paused(true, begun)).toBeUndefined();
    expect(paused(false, begun)).toMatchObject({
      ...{ status: 'Unknown', reason: 'DeploymentResumed', message: 'Deployment is resumed' },
    });
    expect(paused(false, progressing('X'))).toBeUndefined();
    expect(paused(false, undefined)).toBeUndefined();
  });

  it('does not replace the condition of a deadline that has passed, and has none without a deadline', () => {
    expect(paused(true, progressing('ProgressDeadlineExceeded'))).toBeUndefined();
    expect(paused(true, undefined, { progressDeadlineSeconds: undefined })).toBeUndefined();
  });
});

it('a set that cannot be created is in the status once', () => {
  const of = (conditions: object[], spec: object = {}) =>
    creationFailedStatus(deployment(spec, { status: { replicas: 2, conditions } }), 'quota', NOW_MS);
  expect(of([])).toEqual({
    replicas: 2,
    conditions: [
      {
        ...{ type: 'Progressing', status: 'False', reason: 'ReplicaSetCreateError', message: 'quota' },
        ...{ lastUpdateTime: NOW, lastTransitionTime: NOW },
      },
    ],
  });
  expect(of([progressing('ReplicaSetCreateError')])).toBeUndefined();
  expect(of([{ type: 'Other', status: 'True', reason: 'ReplicaSetCreateError' }])?.conditions).toHaveLength(2);
  expect(of([], { progressDeadlineSeconds: undefined })).toBeUndefined();
});
