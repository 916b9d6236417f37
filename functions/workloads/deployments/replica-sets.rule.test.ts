import { describe, expect, it } from 'vitest';
import type { DeploymentSpec, KubeDeployment, KubeReplicaSet } from '../workload-types.ts';
import {
  createdNewSet,
  fencepostsOf,
  isScalingEvent,
  newSetSize,
  type Resize,
  reduceAvailable,
  reduceOldSets,
  reduceUnhealthy,
  revisionsOf,
  type Scaling,
  type SizedSet,
  scaleSets,
  sizeAnnotations,
  sizedSet,
  unavailableMax,
  updatedNewSet,
} from './replica-sets.rule.ts';

/** A ReplicaSet of an age in milliseconds: `a` is the oldest. */
const set = (name: string, size: number, available = size, more: Partial<SizedSet> = {}): SizedSet => ({
  name,
  size,
  available,
  createdAtMs: name.charCodeAt(0),
  ...more,
});
const texts = (resizes: readonly Resize[]): string[] =>
  resizes.map(({ name, from, to, step }) => `${name} ${from}→${to} ${step}`);

it.each<[number | undefined, DeploymentSpec['strategy'], [surge: number, unavailable: number]]>([
  [10, undefined, [3, 2]],
  [undefined, undefined, [1, 0]],
  [10, { type: 'Recreate' }, [0, 0]],
  [10, { type: 'RollingUpdate', rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } }, [2, 0]],
  [10, { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 3 } }, [0, 3]],
  [10, { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } }, [0, 1]],
  [10, { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: '1%' } }, [0, 1]],
  [10, { type: 'RollingUpdate', rollingUpdate: { maxSurge: 'x', maxUnavailable: 'y' } }, [0, 1]],
])(
  'of %j replicas with %j, so many may be too many and unavailable: %j',
  (replicas, strategy, [surge, unavailable]) => {
    const spec = { ...(replicas !== undefined && { replicas }), ...(strategy && { strategy }) };
    expect(fencepostsOf(spec)).toEqual({ surge, unavailable });
  },
);

it.each([
  [3, 10, 3],
  [3, 2, 2],
  [3, 0, 0],
])('with %i allowed of %i replicas, %i may be unavailable', (unavailable, replicas, most) => {
  expect(unavailableMax({ surge: 0, unavailable }, replicas)).toBe(most);
});

describe('a rolling update', () => {
  it.each([
    ['grows as far as the surge permits', 2, [set('a', 10)], 10, 3],
    ['grows by what is free', 2, [set('a', 7)], 10, 6],
    ['grows to the replicas at most', 2, [set('a', 0)], 4, 4],
    ['waits while there are too many', 2, [set('a', 12)], 10, 2],
    ['shrinks to the replicas', 12, [set('a', 0)], 10, 10],
  ])('%s', (_, size, old, replicas, expected) => {
    expect(newSetSize(size, [set('z', size), ...old], replicas, { surge: 3, unavailable: 0 })).toBe(expected);
  });

  it.each<[string, SizedSet, SizedSet[], string[]]>([
    ['removes nothing while every pod is needed', set('z', 2, 0), [set('a', 8)], []],
    ['removes as many as are available beyond the minimum', set('z', 3), [set('a', 8)], ['a 8→5 available']],
    [
      'removes unhealthy pods first, of the oldest',
      set('z', 2),
      [set('b', 5, 3), set('a', 5, 4)],
      ['a 5→4 unhealthy', 'b 5→3 unhealthy', 'a 4→3 available'],
    ],
    ['does not count new pods that are not available yet', set('z', 4, 1), [set('a', 9)], ['a 9→7 available']],
  ])('%s', (_, newSet, old, expected) => {
    expect(texts(reduceOldSets(newSet, old, 10, { surge: 3, unavailable: 2 }))).toEqual(expected);
  });

  it('removes in the order of age, then of names', () => {
    const alike = [
      set('b', 2, 0, { createdAtMs: 5 }),
      set('a', 2, 0, { createdAtMs: 5 }),
      set('c', 2, 0, { createdAtMs: 1 }),
    ];
    const expected = (step: string) => [`c 2→0 ${step}`, `a 2→0 ${step}`, `b 2→1 ${step}`];
    expect(texts(reduceUnhealthy(alike, 5))).toEqual(expected('unhealthy'));
    const healthy = alike.map((each) => ({ ...each, available: 2 }));
    expect(texts(reduceAvailable(healthy, { available: 1 }, 2))).toEqual(expected('available'));
  });

  it('passes over what is empty, healthy or no longer to be removed', () => {
    expect(texts(reduceUnhealthy([set('a', 0, 0), set('b', 2), set('c', 3, 1)], 5))).toEqual(['c 3→1 unhealthy']);
    expect(reduceUnhealthy([set('a', 3, 1)], 0)).toEqual([]);
    expect(texts(reduceAvailable([set('a', 0), set('b', 4)], { available: 0 }, 3))).toEqual(['b 4→3 available']);
    expect(reduceAvailable([set('a', 4)], { available: 0 }, 4)).toEqual([]);
  });
});

it.each([
  ['none has pods', [set('a', 0, 0, { desired: 3 })], false],
  ['one was sized for other replicas', [set('a', 2, 2, { desired: 3 }), set('b', 1, 1, { desired: 5 })], true],
  ['all were sized for these', [set('a', 2, 2, { desired: 5 })], false],
  ['one does not say for how many', [set('a', 2)], false],
])('the replicas were changed where %s: %j', (_, sets, isEvent) => {
  expect(isScalingEvent(sets, 5)).toBe(isEvent);
});

describe('a change of the replicas', () => {
  const scaled = (given: Partial<Scaling>) =>
    texts(
      scaleSets({
        newSet: undefined,
        oldSets: [],
        replicas: 10,
        fenceposts: { surge: 2, unavailable: 0 },
        isRollingUpdate: true,
        statusReplicas: 0,
        ...given,
      }),
    );

  it.each<[string, Partial<Scaling>, string[]]>([
    ['resizes nothing without a ReplicaSet', {}, []],
    ['resizes the only one', { newSet: set('z', 4) }, ['z 4→10 scale']],
    ['resizes the only one that has pods', { newSet: set('z', 0), oldSets: [set('a', 4)] }, ['a 4→10 scale']],
    ['resizes the new one where none has pods', { newSet: set('z', 0), oldSets: [set('a', 0)] }, ['z 0→10 scale']],
    ['resizes the youngest old one where none has pods', { oldSets: [set('b', 0), set('a', 0)] }, ['b 0→10 scale']],
    ['leaves the only one that fits', { newSet: set('z', 10) }, []],
    [
      'empties the old ones once the new one has all',
      { newSet: set('z', 10, 10, { desired: 10 }), oldSets: [set('a', 2), set('b', 0)] },
      ['a 2→0 saturated'],
    ],
    [
      'leaves all of a Deployment that recreates',
      { newSet: set('z', 4), oldSets: [set('a', 4)], isRollingUpdate: false },
      [],
    ],
    [
      'adds in proportion to the sizes, and the rest to the largest',
      { newSet: set('z', 2, 2, { max: 7 }), oldSets: [set('a', 5, 5, { max: 7 })] },
      ['a 5→9 proportional', 'z 2→3 proportional'],
    ],
    [
      'removes in proportion to the sizes',
      { replicas: 3, newSet: set('z', 4, 4, { max: 12 }), oldSets: [set('a', 8, 8, { max: 12 })] },
      ['a 8→3 proportional', 'z 4→2 proportional'],
    ],
    [
      'empties all without replicas',
      { replicas: 0, newSet: set('z', 4, 4, { max: 12 }), oldSets: [set('a', 8, 8, { max: 12 })] },
      ['a 8→0 proportional', 'z 4→0 proportional'],
    ],
    [
      'uses the replicas of the status where a ReplicaSet does not say for how many it was sized',
      { statusReplicas: 6, newSet: set('z', 3), oldSets: [set('a', 3)] },
      ['z 3→6 proportional', 'a 3→6 proportional'],
    ],
    [
      'adds to the youngest of those of one size, where nothing is known',
      { newSet: set('z', 3), oldSets: [set('a', 3)] },
      ['z 3→9 proportional'],
    ],
    [
      'removes of the oldest of those of one size, where nothing is known',
      { replicas: 2, newSet: set('z', 4), oldSets: [set('a', 4)] },
      ['a 4→0 proportional'],
    ],
    ['leaves all where the sum fits', { newSet: set('z', 4), oldSets: [set('a', 8)] }, []],
  ])('%s', (_, given, expected) => {
    expect(scaled(given)).toEqual(expected);
  });

  it.each([
    ['other replicas', set('z', 9, 9, { desired: 9 })],
    ['pods that are not available', set('z', 10, 9, { desired: 10 })],
    ['a size for others', set('z', 10, 10, { desired: 9 })],
  ])('does not empty the old ones of a new one with %s', (_, newSet) => {
    expect(scaled({ newSet, oldSets: [set('a', 3)] }).filter((text) => text.endsWith('saturated'))).toEqual([]);
  });
});

const REVISION = 'deployment.kubernetes.io/revision';
const HISTORY = 'deployment.kubernetes.io/revision-history';
const DESIRED = 'deployment.kubernetes.io/desired-replicas';
const MAX = 'deployment.kubernetes.io/max-replicas';

const template = (image = 'i') => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image }] },
});
const deployment = (spec: object = {}, metadata: object = {}): KubeDeployment => ({
  metadata: { name: 'web', namespace: 'a', uid: 'd', ...metadata },
  spec: { replicas: 4, selector: { matchLabels: { app: 'web' } }, template: template(), ...spec },
});
const setOf = (
  name: string,
  more: { image?: string; created?: string; annotations?: Record<string, string> } = {},
  spec = {},
) =>
  ({
    metadata: {
      name,
      ...(more.created === undefined ? {} : { creationTimestamp: more.created }),
      ...(more.annotations === undefined ? {} : { annotations: more.annotations }),
    },
    spec: { template: template(more.image), ...spec },
  }) as KubeReplicaSet;
const revision = (text: string, more: Record<string, string> = {}) => ({ annotations: { [REVISION]: text, ...more } });

it('the oldest set with the template is the new one, all others are old, the oldest first', () => {
  const sets = [
    setOf('c', { created: '2026-01-03T00:00:00Z' }),
    setOf('b', { created: '2026-01-02T00:00:00Z' }),
    setOf('z', { image: 'other', created: '2026-01-01T00:00:00Z' }),
    setOf('y', { image: 'other' }),
    setOf('x', { image: 'other', created: '2026-01-01T00:00:00Z' }),
  ];
  const { newSet, oldSets } = revisionsOf(deployment(), sets);
  expect([newSet, ...oldSets].map((each) => each?.metadata.name)).toEqual(['b', 'y', 'x', 'z', 'c']);
  expect(revisionsOf(deployment({ template: template('new') }), sets).newSet).toBeUndefined();
});

describe('the size of a set', () => {
  it('is read with the time of its creation', () => {
    expect(sizedSet(setOf('a', { created: '1970-01-01T00:00:01Z' }))).toEqual({
      ...{ name: 'a', size: 0, available: 0, createdAtMs: 1_000 },
    });
    const sized = { ...setOf('a', {}, { replicas: 3 }), status: { availableReplicas: 2 } };
    expect(sizedSet(sized)).toEqual({ name: 'a', size: 3, available: 2, createdAtMs: 0 });
  });

  it.each([
    ['3', 3],
    ['+3', 3],
    ['-3', -3],
    ['2147483647', 2_147_483_647],
    ['2147483648', undefined],
    ['3.5', undefined],
    ['x', undefined],
    ['', undefined],
  ])('is a part of the numbers in its annotations: %j is %s', (text, expected) => {
    const { desired, max } = sizedSet(setOf('a', { annotations: { [DESIRED]: text, [MAX]: text } }));
    expect([desired, max]).toEqual([expected, expected]);
  });

  it.each([
    [{}, '4', '5'],
    [{ replicas: undefined }, '1', '2'],
    [{ strategy: { rollingUpdate: { maxSurge: 3 } } }, '4', '7'],
    [{ strategy: { type: 'Recreate' } }, '4', '4'],
  ])('%j is recorded as %s of %s', (spec, desired, max) => {
    expect(sizeAnnotations(deployment(spec))).toEqual({ [DESIRED]: desired, [MAX]: max });
  });
});

describe('the new set', () => {
  it('is named by the hash of its template, numbered after all others, and sized by the strategy', () => {
    const annotations = { note: 'x', [REVISION]: '99', [HISTORY]: '1', [DESIRED]: '9', [MAX]: '9' };
    const applied = {
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'deprecated.deployment.rollback.to': '1',
    };
    const of = deployment({ minReadySeconds: 5 }, { annotations: { ...annotations, ...applied } });
    const old = [setOf('o', { image: 'x', ...revision('7') }, { replicas: 3 }), setOf('p', revision('x'))];
    const made = createdNewSet(of, old);
    const hash = made.metadata.labels?.['pod-template-hash'];
    expect(made).toEqual({
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        name: `web-${hash}`,
        namespace: 'a',
        labels: { app: 'web', 'pod-template-hash': hash },
        annotations: { note: 'x', [REVISION]: '8', [DESIRED]: '4', [MAX]: '5' },
        ownerReferences: [
          {
            ...{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'd' },
            ...{ controller: true, blockOwnerDeletion: true },
          },
        ],
      },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: 'web', 'pod-template-hash': hash } },
        template: { ...template(), metadata: { labels: { app: 'web', 'pod-template-hash': hash } } },
        minReadySeconds: 5,
      },
    });
    expect(createdNewSet(deployment({ strategy: { type: 'Recreate' } }), old).spec?.replicas).toBe(4);
    const plain = createdNewSet(deployment(), []);
    expect(plain.metadata.annotations?.[REVISION]).toBe('1');
    expect('minReadySeconds' in (plain.spec ?? {})).toBe(false);
    const collided = createdNewSet({ ...deployment(), status: { collisionCount: 1 } }, []);
    expect(collided.metadata.name).not.toBe(plain.metadata.name);
  });

  it('stays as it is when it is the latest, and gets annotations and minReadySeconds of its Deployment', () => {
    const newest = setOf('n', revision('3'));
    const old = [setOf('o', revision('2'))];
    expect(updatedNewSet(deployment(), newest, old)).toBe(newest);
    const annotated = updatedNewSet(deployment({}, { annotations: { note: 'x', [REVISION]: '9' } }), newest, old);
    expect(annotated.metadata.annotations).toEqual({ [REVISION]: '3', note: 'x' });
    const slow = updatedNewSet(deployment({ minReadySeconds: 5 }), newest, old);
    expect(slow).toEqual({ ...newest, spec: { ...newest.spec, minReadySeconds: 5 } });
    expect(updatedNewSet(deployment(), slow, old)).toEqual(newest);
    expect(updatedNewSet(deployment({ minReadySeconds: 5 }), slow, old)).toBe(slow);
  });

  it.each([
    ['2', undefined, ['2', '7'], '8', '2'],
    ['2', '1', ['7'], '8', '1,2'],
    ['7', '1', ['7'], '8', '1,7'],
    ['8', '1', ['7'], '8', '1'],
    [undefined, undefined, [], '1', undefined],
    ['x', undefined, ['x'], '1', undefined],
    ['9223372036854775807', undefined, ['9223372036854775807'], '9223372036854775807', undefined],
  ])(
    'with revision %s and history %s among %j has the revision %s and the history %s',
    (own, history, others, next, past) => {
      const stored = {
        ...(own === undefined ? {} : { [REVISION]: own }),
        ...(history === undefined ? {} : { [HISTORY]: history }),
      };
      const updated = updatedNewSet(
        deployment(),
        setOf('n', { annotations: stored }),
        others.map((each) => setOf('o', revision(each))),
      );
      expect(updated.metadata.annotations?.[REVISION]).toBe(next);
      expect(updated.metadata.annotations?.[HISTORY]).toBe(past);
    },
  );

  it('drops the oldest revisions of a history that is too long', () => {
    const history = Array.from({ length: 400 }, (_, at) => String(1_000 + at)).join(',');
    const stored = setOf('n', revision('2000', { [HISTORY]: history }));
    const kept =
      updatedNewSet(deployment(), stored, [setOf('o', revision('3000'))]).metadata.annotations?.[HISTORY] ?? '';
    expect(kept).toHaveLength(1_999);
    expect(kept).toMatch(/^1001,.*,1399,2000$/);
  });
});
