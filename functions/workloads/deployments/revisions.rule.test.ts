import { describe, expect, it } from 'vitest';
import type { KubeDeployment, KubeReplicaSet } from '../workload-types.ts';
import { createdNewSet, revisionsOf, sizeAnnotations, sizedSet, updatedNewSet } from './revisions.rule.ts';

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
const set = (
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
    set('c', { created: '2026-01-03T00:00:00Z' }),
    set('b', { created: '2026-01-02T00:00:00Z' }),
    set('z', { image: 'other', created: '2026-01-01T00:00:00Z' }),
    set('y', { image: 'other' }),
    set('x', { image: 'other', created: '2026-01-01T00:00:00Z' }),
  ];
  const { newSet, oldSets } = revisionsOf(deployment(), sets);
  expect([newSet, ...oldSets].map((each) => each?.metadata.name)).toEqual(['b', 'y', 'x', 'z', 'c']);
  expect(revisionsOf(deployment({ template: template('new') }), sets).newSet).toBeUndefined();
});

describe('the size of a set', () => {
  it('is read with the time of its creation', () => {
    expect(sizedSet(set('a', { created: '1970-01-01T00:00:01Z' }))).toEqual({
      ...{ name: 'a', size: 0, available: 0, createdAtMs: 1_000 },
    });
    const sized = { ...set('a', {}, { replicas: 3 }), status: { availableReplicas: 2 } };
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
    const { desired, max } = sizedSet(set('a', { annotations: { [DESIRED]: text, [MAX]: text } }));
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
    const old = [set('o', { image: 'x', ...revision('7') }, { replicas: 3 }), set('p', revision('x'))];
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
    const newest = set('n', revision('3'));
    const old = [set('o', revision('2'))];
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
        set('n', { annotations: stored }),
        others.map((each) => set('o', revision(each))),
      );
      expect(updated.metadata.annotations?.[REVISION]).toBe(next);
      expect(updated.metadata.annotations?.[HISTORY]).toBe(past);
    },
  );

  it('drops the oldest revisions of a history that is too long', () => {
    const history = Array.from({ length: 400 }, (_, at) => String(1_000 + at)).join(',');
    const stored = set('n', revision('2000', { [HISTORY]: history }));
    const kept =
      updatedNewSet(deployment(), stored, [set('o', revision('3000'))]).metadata.annotations?.[HISTORY] ?? '';
    expect(kept).toHaveLength(1_999);
    expect(kept).toMatch(/^1001,.*,1399,2000$/);
  });
});
