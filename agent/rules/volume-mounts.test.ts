import { describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../shared/kinds/types.ts';
import { objectsOf } from './pod-objects.ts';
import { mountPlan } from './volume-mounts.ts';

const data = { name: 'data', emptyDir: {} };
const volumes = [
  data,
  ...['configMap', 'secret', 'downwardAPI', 'projected'].map((source) => ({ name: source, [source]: {} })),
];
const pod = { metadata: { name: 'p' }, spec: { volumes } } as unknown as KubePod;
const planOf = (mounts: readonly object[] | undefined, variables = {}, of = pod) =>
  mountPlan(of, { name: 'c', volumeMounts: mounts } as unknown as Container, variables);
const mountOf = (over: object, variables = {}) => {
  const plan = planOf([{ name: 'data', mountPath: '/d', ...over }], variables);
  return plan.kind === 'mounts' ? plan.mounts[0] : plan.message;
};

describe('the mounts of a container', () => {
  it('have the volume, its path, and all of it to write', () => {
    expect(mountOf({})).toEqual({ volume: data, target: '/d', subPath: '', readOnly: false });
    expect(planOf(undefined)).toEqual({ kind: 'mounts', mounts: [] });
  });

  it.each([
    ['/a//b/./c/', '/a/b/c'],
    ['a', '/a'],
    ['/', '/'],
  ])('with the path %s are at %s', (mountPath, target) => {
    expect(mountOf({ mountPath })).toMatchObject({ target });
  });

  it('are read only by wish, and where only the agent writes', () => {
    expect(mountOf({ readOnly: true })).toMatchObject({ readOnly: true });
    for (const name of ['configMap', 'secret', 'downwardAPI', 'projected'])
      expect(mountOf({ name })).toMatchObject({ readOnly: true });
  });

  it('have a parent directory before what is below it', () => {
    const plan = planOf(['/a/b/c', '/a', '/a/b', '/z'].map((mountPath) => ({ name: 'data', mountPath })));
    const targets = plan.kind === 'mounts' ? plan.mounts.map(({ target }) => target) : [];
    expect(targets).toEqual(['/a', '/z', '/a/b', '/a/b/c']);
  });

  it.each([
    [{ subPath: 'x/y' }, 'x/y'],
    [{ subPathExpr: 'x/$(A)-$(A)' }, 'x/1-1'],
    [{ subPathExpr: '$(EMPTY)z' }, 'z'],
    [{ subPathExpr: '$$(A)' }, '$(A)'],
    [{ subPathExpr: '$A' }, '$A'],
    [{ subPath: 'x', subPathExpr: 'y' }, 'y'],
    [{ subPath: '..x' }, '..x'],
  ])('with %j have the part %s', (over, subPath) => {
    expect(mountOf(over, { A: '1', EMPTY: '' })).toMatchObject({ subPath });
  });

  it.each([
    [{ name: 'other' }, 'cannot find volume "other" to mount into container'],
    [
      { mountPropagation: 'Bidirectional' },
      'volumeMount /d: mountPropagation Bidirectional is not supported on this node',
    ],
    [{ subPathExpr: '$(B)' }, 'missing value for "$(B)"'],
    [{ subPathExpr: '$(toString)' }, 'missing value for "$(toString)"'],
    [{ subPathExpr: '$(ROOT)' }, 'error SubPath `/r` must not be an absolute path'],
    [{ subPath: 'a/../b' }, "unable to provision SubPath `a/../b`: must not contain '..'"],
  ])('with %j are refused', (over, message) => {
    expect(mountOf(over, { ROOT: '/r' })).toBe(message);
  });

  it('of a pod without volumes are refused', () => {
    const none = { metadata: { name: 'p' } } as KubePod;
    expect(planOf([{ name: 'data' }], {}, none)).toEqual({
      kind: 'failed',
      message: 'cannot find volume "data" to mount into container',
    });
  });
});

describe('the objects that a pod refers to', () => {
  it('are those of volumes, of variables and of both kinds of containers, each once', () => {
    const env = [
      { valueFrom: { configMapKeyRef: { name: 'c5' } } },
      { valueFrom: { secretKeyRef: { name: 's5' } } },
      {},
    ];
    const spec = {
      volumes: [
        { configMap: { name: 'c1' } },
        { secret: { secretName: 's1' } },
        { projected: { sources: [{ configMap: { name: 'c2' } }, { secret: { name: 's2' } }, {}] } },
        { projected: {} },
        { configMap: {} },
      ],
      initContainers: [{ envFrom: [{ configMapRef: { name: 'c3' } }, { secretRef: { name: 's3' } }] }],
      containers: [{ envFrom: [{ configMapRef: { name: 'c1' } }], env }, { env: [{ valueFrom: {} }] }],
    };
    const found = objectsOf({ metadata: {}, spec } as unknown as KubePod);
    expect(found.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'configmap c1',
      'secret s1',
      'configmap c2',
      'secret s2',
      'configmap c3',
      'secret s3',
      'configmap c5',
      'secret s5',
    ]);
  });

  it('are none without a spec, and two where both kinds have one name', () => {
    expect(objectsOf({ metadata: {} } as KubePod)).toEqual([]);
    const volumes = [{ configMap: { name: 'a' } }, { secret: { secretName: 'a' } }];
    expect(objectsOf({ metadata: {}, spec: { volumes } } as unknown as KubePod)).toHaveLength(2);
  });
});
