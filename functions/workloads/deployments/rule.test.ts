import { describe, expect, it } from 'vitest';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import type { DeploymentSpec, KubeDeployment, KubeReplicaSet, WorkloadCondition } from '../workload-types.ts';
import {
  fencepostsOf,
  newSetSize,
  reduceAvailable,
  reduceOldSets,
  reduceUnhealthy,
  type SizedSet,
  scaleSets,
} from './replica-sets.rule.ts';
import { decideDeployment } from './rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const NO_SURGE = { surge: 0, unavailable: 0 };

const set = (name: string, size: number, more: Partial<SizedSet> = {}): SizedSet => ({
  name,
  size,
  available: size,
  createdAtMs: Number(name.slice(1)) * 1_000,
  ...more,
});
const sizes = (sets: readonly SizedSet[], resizes: readonly { name: string; to: number }[]) =>
  sets.map(({ name, size }) => resizes.findLast((each) => each.name === name)?.to ?? size);

describe('fenceposts', () => {
  it.each([
    ['39%', '39%', 10, 4, 3],
    ['25%', '25%', 1, 1, 0],
    ['25%', '25%', 3, 1, 0],
    ['25%', '25%', 10, 3, 2],
    [0, 0, 10, 0, 1],
    [0, '1%', 10, 0, 1],
  ])(
    'WD-01 surge %s and unavailable %s of %i are %i and %i',
    (maxSurge, maxUnavailable, replicas, surge, unavailable) => {
      const spec: DeploymentSpec = { replicas, strategy: { rollingUpdate: { maxSurge, maxUnavailable } } };
      expect(fencepostsOf(spec)).toEqual({ surge, unavailable });
    },
  );
});

describe('the size of the new ReplicaSet', () => {
  it.each([
    ['WD-05', 10, 0, 0, 10, 0],
    ['WD-07', 10, 2, 0, 5, 7],
    ['WD-09', 10, 2, 11, 2, 10],
  ])('%s of %i with surge %i from %i beside %i is %i', (_id, replicas, surge, newSize, oldSize, expected) => {
    const sets = [set('v2', newSize), set('v1', oldSize)];
    expect(newSetSize(newSize, sets, replicas, { surge, unavailable: 0 })).toBe(expected);
  });
});

describe('reductions of old ReplicaSets', () => {
  const reduced = (newSet: SizedSet, old: readonly SizedSet[], replicas: number, unavailable: number, surge = 0) =>
    sizes(old, reduceOldSets(newSet, old, replicas, { surge, unavailable }));

  it('WD-11 reduce what may be unavailable', () => expect(reduced(set('v2', 0), [set('v1', 10)], 10, 2)).toEqual([8]));

  it('WD-13 reduce the unhealthy ones first', () =>
    expect(reduced(set('v2', 0), [set('v1', 10, { available: 8 })], 10, 2)).toEqual([8]));

  it('WD-15 wait for the new ones', () =>
    expect(reduced(set('v2', 2, { available: 0 }), [set('v1', 8)], 10, 2)).toEqual([8]));

  it('WD-17 reduce a broken rollout by its unhealthy pods', () => {
    const resizes = reduceOldSets(set('v1', 8, { available: 7 }), [set('v2', 5, { available: 0 })], 10, {
      surge: 3,
      unavailable: 2,
    });
    expect(resizes).toEqual([{ name: 'v2', from: 5, to: 1, step: 'unhealthy' }]);
  });

  it('WD-19 reduce at most what is allowed', () =>
    expect(reduceUnhealthy([set('v1', 10, { available: 8 })], 1)).toMatchObject([{ from: 10, to: 9 }]));

  it('WD-21 keep the minimum available', () =>
    expect(reduceAvailable([set('v1', 10, { available: 8 })], { available: 0 }, 8)).toEqual([]));
});

describe('a change of spec.replicas', () => {
  const scaled = (sets: readonly SizedSet[], replicas: number, more: { surge?: number; hasNew?: boolean } = {}) => {
    const before = sets.reduce((sum, { size }) => sum + size, 0);
    const withMax = sets.map((each) => ({ max: before, ...each }));
    const resizes = scaleSets({
      newSet: more.hasNew === false ? undefined : withMax[0],
      oldSets: more.hasNew === false ? withMax : withMax.slice(1),
      replicas,
      fenceposts: { ...NO_SURGE, surge: more.surge ?? 0 },
      isRollingUpdate: true,
      statusReplicas: before,
    });
    return sizes(sets, resizes);
  };

  it.each([12, 5])('WD-23 resizes the only ReplicaSet to %i', (to) =>
    expect(scaled([set('v1', 10)], to)).toEqual([to]),
  );
  it('WD-25 removes in proportion', () => expect(scaled([set('v2', 2), set('v1', 3)], 3)).toEqual([1, 2]));
  it('WD-27 adds in proportion', () =>
    expect(scaled([set('v3', 2), set('v2', 3), set('v1', 2)], 10)).toEqual([3, 4, 3]));
  it('WD-29 adds to the newest of equal ones', () =>
    expect(scaled([set('v3', 1), set('v2', 1), set('v1', 1)], 4)).toEqual([2, 1, 1]));
  it('WD-31 creates no ReplicaSet', () =>
    expect(scaled([set('v2', 2), set('v1', 2)], 5, { hasNew: false })).toEqual([3, 2]));
  it('WD-33 removes all', () => expect(scaled([set('v3', 3), set('v2', 2), set('v1', 1)], 0)).toEqual([0, 0, 0]));
  it('WD-35 counts the surge', () => expect(scaled([set('v2', 6), set('v1', 6)], 20, { surge: 2 })).toEqual([11, 11]));
  it('WD-37 keeps an old ReplicaSet while the new one is broken', () =>
    expect(
      sizes(
        [set('v2', 2), set('v1', 1)],
        scaleSets({
          newSet: set('v2', 2, { available: 0, desired: 2, max: 3 }),
          oldSets: [set('v1', 1, { desired: 2, max: 3 })],
          replicas: 2,
          fenceposts: { surge: 1, unavailable: 1 },
          isRollingUpdate: true,
          statusReplicas: 3,
        }),
      ),
    ).toEqual([2, 1]));
});

const template = (image: string) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image }] },
});

function deployment(spec: Partial<DeploymentSpec> = {}, more: Partial<KubeDeployment> = {}): KubeDeployment {
  return {
    metadata: { name: 'web', namespace: 'default', uid: 'd', generation: 1 },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: 'web' } },
      template: template('v1'),
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      ...spec,
    },
    ...more,
  };
}

const decide = (
  of: KubeDeployment,
  sets: readonly KubeReplicaSet[],
  more: { oldPods?: number; isHeld?: boolean } = {},
) => decideDeployment({ deployment: of, sets, oldPods: 0, isHeld: false, lastHoldEndedMs: 0, nowMs: NOW_MS, ...more });

/** The ReplicaSet that the Deployment makes, with a size and status. */
function madeSet(
  of: KubeDeployment,
  {
    size,
    available = size,
    replicas = size,
    ageSeconds = 100,
  }: { size: number; available?: number; replicas?: number; ageSeconds?: number },
): KubeReplicaSet {
  const made = decide(of, []).create!;
  return {
    ...made,
    metadata: {
      ...made.metadata,
      uid: `uid-${made.metadata.name}`,
      generation: 1,
      creationTimestamp: formatTime(NOW_MS - ageSeconds * 1_000),
    },
    spec: { ...made.spec, replicas: size },
    status: { replicas, readyReplicas: available, availableReplicas: available, observedGeneration: 1 },
  };
}
const progressing = ({ status }: { status?: { conditions?: WorkloadCondition[] } }) =>
  status?.conditions?.find(({ type }) => type === 'Progressing');

describe('a sync of a Deployment', () => {
  it('creates the ReplicaSet of a new template with hash, revision and sizes', () => {
    const { create, revision, status } = decide(deployment(), []);
    const hash = create?.metadata.labels?.['pod-template-hash'];
    expect(hash).toMatch(/^[bcdfghjklmnpqrstvwxz2456789]{1,10}$/);
    expect(create).toMatchObject({
      metadata: {
        name: `web-${hash}`,
        annotations: {
          'deployment.kubernetes.io/revision': '1',
          'deployment.kubernetes.io/desired-replicas': '3',
          'deployment.kubernetes.io/max-replicas': '4',
        },
        ownerReferences: [{ uid: 'd', controller: true, blockOwnerDeletion: true }],
      },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: 'web', 'pod-template-hash': hash } },
        template: { metadata: { labels: { app: 'web', 'pod-template-hash': hash } } },
      },
    });
    expect(revision).toBe('1');
    expect(progressing({ status: status! })).toMatchObject({ status: 'True', reason: 'NewReplicaSetCreated' });
  });

  it('WD-03 raises the new ReplicaSet first, and gives up the old one when the new pod is available', () => {
    const old = madeSet(deployment({ replicas: 1 }), { size: 1 });
    const next = deployment({ replicas: 1, template: template('v2') });
    const first = decide(next, [old]);
    expect([first.create?.spec?.replicas, first.update]).toEqual([1, []]);
    const waiting = { ...madeSet(next, { size: 1, available: 0, ageSeconds: 1 }) };
    waiting.metadata.annotations!['deployment.kubernetes.io/revision'] = '2';
    expect(decide(next, [old, waiting]).update).toEqual([]);
    const ready = { ...waiting, status: { ...waiting.status, readyReplicas: 1, availableReplicas: 1 } };
    expect(decide(next, [old, ready]).update).toMatchObject([{ resize: { name: old.metadata.name, from: 1, to: 0 } }]);
  });

  it('decides nothing in a settled state', () => {
    const of = deployment();
    const only = madeSet(of, { size: 3 });
    const { status, revision } = decide(of, [only]);
    const settled = {
      ...of,
      metadata: { ...of.metadata, annotations: { 'deployment.kubernetes.io/revision': revision! } },
      status: status!,
    };
    expect(progressing(settled)).toMatchObject({ reason: 'NewReplicaSetAvailable' });
    expect(decide(settled, [only])).toEqual({ update: [], remove: [], held: [] });
  });

  it('WD-51 renumbers a ReplicaSet that is current again', () => {
    const back = deployment();
    const v1 = madeSet(back, { size: 0, ageSeconds: 200 });
    v1.metadata.annotations!['deployment.kubernetes.io/revision'] = '2';
    const v2 = madeSet(deployment({ template: template('v2') }), { size: 3 });
    v2.metadata.annotations!['deployment.kubernetes.io/revision'] = '3';
    const { update, revision } = decide(back, [v1, v2]);
    expect(update[0]?.next.metadata.annotations).toMatchObject({
      'deployment.kubernetes.io/revision': '4',
      'deployment.kubernetes.io/revision-history': '2',
    });
    expect(revision).toBe('4');
  });

  it('WD-41 WD-43 times out after the deadline, and recovers with progress', () => {
    const at = (secondsAgo: number, reason = 'ReplicaSetUpdated') => ({
      type: 'Progressing',
      status: reason === 'ReplicaSetUpdated' ? ('True' as const) : ('False' as const),
      reason,
      lastUpdateTime: formatTime(NOW_MS - secondsAgo * 1_000),
      lastTransitionTime: formatTime(NOW_MS - 500_000),
    });
    const counts = {
      replicas: 3,
      updatedReplicas: 3,
      readyReplicas: 1,
      availableReplicas: 1,
      unavailableReplicas: 2,
      observedGeneration: 1,
    };
    const of = deployment({ progressDeadlineSeconds: 10 });
    const only = madeSet(of, { size: 3, available: 1 });
    const sync = (stored: WorkloadCondition, available = 1, isHeld = false) =>
      decide({ ...of, status: { ...counts, availableReplicas: available, conditions: [stored] } }, [only], {
        isHeld,
      });
    expect(progressing({ status: sync(at(11)).status! })).toMatchObject({
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
    });
    expect(progressing({ status: sync(at(9)).status! })).toMatchObject({ lastUpdateTime: at(9).lastUpdateTime });
    expect(progressing({ status: sync(at(11), 1, true).status! })).toMatchObject({ status: 'True' });
    const now = formatTime(NOW_MS);
    expect(progressing({ status: sync(at(60, 'ProgressDeadlineExceeded'), 0).status! })).toMatchObject({
      status: 'True',
      reason: 'ReplicaSetUpdated',
      lastUpdateTime: now,
      lastTransitionTime: now,
    });
  });

  it('WD-45 WD-47 Recreate waits until no old pod is left', () => {
    const strategy = { type: 'Recreate' as const };
    const next = deployment({ strategy, template: template('v2') });
    const old = (size: number, replicas: number) => madeSet(deployment({ strategy }), { size, replicas });
    expect(decide(next, [old(3, 3)])).toMatchObject({ update: [{ resize: { to: 0, step: 'recreate' } }] });
    expect(decide(next, [old(0, 1)]).create).toBeUndefined();
    expect(decide(next, [old(0, 0)], { oldPods: 1 }).create).toBeUndefined();
    expect(decide(next, [old(0, 0)]).create?.spec?.replicas).toBe(3);
  });

  it('WD-49 deletes the oldest of the old ReplicaSets beyond the limit', () => {
    const of = deployment({ revisionHistoryLimit: 1 });
    const old = ['a', 'b', 'c'].map((image, index) =>
      madeSet(deployment({ template: template(image) }), { size: 0, ageSeconds: 1_000 - index }),
    );
    const current = madeSet(of, { size: 3 });
    current.metadata.annotations!['deployment.kubernetes.io/revision'] = '9';
    const status = { replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3, observedGeneration: 1 };
    const names = decide({ ...of, status }, [...old, current]).remove.map(({ metadata }) => metadata.name);
    expect(names).toEqual(old.slice(0, 2).map(({ metadata }) => metadata.name));
    expect(decide({ ...of, status }, [...old, current], { isHeld: true }).remove).toEqual([]);
  });

  it.each([
    ['9007199254740993', '9007199254740994'],
    ['+41', '42'],
    ['9223372036854775807', '9223372036854775807'],
    ['9223372036854775808', '1'],
    ['1e3', '1'],
  ])('numbers the ReplicaSet after one of revision %s with %s, an int64', (stored, next) => {
    const old = madeSet(deployment(), { size: 3 });
    old.metadata.annotations!['deployment.kubernetes.io/revision'] = stored;
    const { create } = decide(deployment({ template: template('v2') }), [old]);
    expect(create?.metadata.annotations?.['deployment.kubernetes.io/revision']).toBe(next);
  });

  it('WD-55 makes no ReplicaSet while paused, and says so', () => {
    const of = deployment({ paused: true, template: template('v2') });
    const decision = decide(of, [madeSet(deployment(), { size: 3 })]);
    expect([decision.create, decision.update]).toEqual([undefined, []]);
    expect(progressing({ status: decision.status! })).toMatchObject({ status: 'Unknown', reason: 'DeploymentPaused' });
  });

  it.each<[string, Partial<DeploymentSpec>]>([
    ['a pause', { paused: true }],
    ['a resume', {}],
    ['a rollout', { template: template('v2') }],
    ['Recreate', { strategy: { type: 'Recreate' }, template: template('v2') }],
    ['a new size', { replicas: 5 }],
    ['a selector of all pods', { selector: {} }],
  ])('keeps the other fields and conditions of the status through %s', (name, spec) => {
    const own = { type: 'example.com/own', status: 'True' as const };
    const pause = { type: 'Progressing', status: 'Unknown' as const, reason: 'DeploymentPaused' };
    const of = deployment(spec, {
      metadata: { name: 'web', namespace: 'default', uid: 'd', generation: 7 },
      status: { collisionCount: 4, replicas: 3, conditions: name === 'a resume' ? [own, pause] : [own] },
    });
    const { status } = decide(of, [madeSet(deployment(), { size: 3 })]);
    expect(status).toMatchObject({ collisionCount: 4, observedGeneration: 7, replicas: 3 });
    expect(status?.conditions).toContainEqual(own);
  });

  it('removes no old ReplicaSet before its own status is complete', () => {
    const of = deployment({ revisionHistoryLimit: 0 });
    const old = madeSet(deployment({ template: template('old') }), { size: 0, ageSeconds: 1_000 });
    const current = madeSet(of, { size: 3 });
    current.metadata.annotations!['deployment.kubernetes.io/revision'] = '9';
    const removed = (status: object) =>
      decide(of, [old, { ...current, status: { ...current.status, ...status } }]).remove.length;
    expect(removed({})).toBe(1);
    for (const status of [{ replicas: 4 }, { replicas: 2 }, { availableReplicas: 2 }]) {
      expect([status, removed(status)]).toEqual([status, 0]);
    }
  });

  it('removes no old ReplicaSet while paused, as long as pods of it terminate: Recreate waits for them', () => {
    const strategy = { type: 'Recreate' as const };
    const of = deployment({ strategy, revisionHistoryLimit: 0, paused: true, template: template('v2') });
    const old = madeSet(deployment({ strategy }), { size: 0, replicas: 0 });
    expect(decide(of, [old], { oldPods: 1 }).remove).toEqual([]);
    expect(decide(of, [old]).remove).toHaveLength(1);
  });

  it('WD-57 starts no rollout for a change of replicas and labels', () => {
    const of = deployment();
    const only = madeSet(of, { size: 3 });
    const decision = decide(
      { ...of, metadata: { ...of.metadata, labels: { a: 'b' } }, spec: { ...of.spec, replicas: 5 } },
      [only],
    );
    expect(decision.create).toBeUndefined();
    expect(decision.update).toMatchObject([{ resize: { from: 3, to: 5 } }]);
  });

  it('WD-61 copies ReplicaFailure, and drops it with its cause', () => {
    const of = deployment();
    const only = madeSet(of, { size: 3, available: 0 });
    const failure = { type: 'ReplicaFailure', status: 'True' as const, reason: 'FailedCreate', message: 'quota' };
    const failing = decide(of, [{ ...only, status: { ...only.status, conditions: [failure] } }]).status!;
    expect(failing.conditions).toContainEqual(expect.objectContaining({ ...failure }));
    const after = decide({ ...of, status: failing }, [only]).status!;
    expect(after.conditions?.some(({ type }) => type === 'ReplicaFailure')).toBe(false);
  });

  it('holds reductions back while the gate is closed, and still follows spec.replicas', () => {
    const next = deployment({
      template: template('v2'),
      strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    });
    const old = madeSet(deployment(), { size: 3 });
    const current = madeSet(next, { size: 0 });
    current.metadata.annotations!['deployment.kubernetes.io/revision'] = '2';
    expect(decide(next, [old, current]).update).toMatchObject([{ resize: { to: 2 } }]);
    const held = decide(next, [old, current], { isHeld: true });
    expect([held.update, held.held]).toMatchObject([[], [{ to: 2 }]]);
    expect(decide(deployment({ replicas: 1 }), [old], { isHeld: true }).update).toMatchObject([{ resize: { to: 1 } }]);
  });

  it('warns of a selector that selects all pods, and raises the observed generation alone', () => {
    expect(decide(deployment({ selector: {} }), [])).toMatchObject({
      warning: { reason: 'SelectingAll' },
      status: { observedGeneration: 1 },
    });
  });
});
