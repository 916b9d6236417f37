import { describe, expect, it } from 'vitest';
import type { KubeObject, OwnerReference } from '../../shared/kinds/types.ts';
import {
  adoptersOf,
  formerJob,
  isWorkload,
  type ObjectRecord,
  ownedResources,
  requiredWorks,
  type Work,
} from './works.rule.ts';

const object = (parts: { metadata?: object; spec?: object; status?: object } = {}): KubeObject =>
  ({ ...parts, metadata: { name: 'x', namespace: 'shop', uid: 'u', ...parts.metadata } }) as KubeObject;
const refOf = (resource: string, name = 'x', namespace = 'shop') => ({ resource, namespace, name });
const record = (
  resource: string,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
  position = 0,
): ObjectRecord => ({
  position,
  ref: refOf(resource),
  ...(before === undefined ? {} : { before }),
  ...(after === undefined ? {} : { after }),
});
const worksOf = (resource: string, before: KubeObject | undefined, after: KubeObject | undefined): readonly Work[] =>
  requiredWorks([record(resource, before, after)]).map(({ work }) => work);
const ownedBy = (kind: string, more: Partial<OwnerReference> = {}, name = 'owner') => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: 'owner-uid', controller: true, ...more }],
});
const controlled = (kind: string) => object({ metadata: ownedBy(kind) });
const sync = (resource: string, name: string, namespace = 'shop'): Work => ({
  kind: 'sync',
  ref: refOf(resource, name, namespace),
});
const QUOTAS = sync('resourcequotas', '');
const kindsOf = (works: readonly Work[]) => works.map(({ kind }) => kind);

it('only objects of these kinds are adopted', () => {
  expect(adoptersOf('pods')).toEqual(['replicasets', 'replicationcontrollers', 'daemonsets', 'statefulsets']);
  expect(adoptersOf('replicasets')).toEqual(['deployments']);
  expect(adoptersOf('configmaps')).toEqual([]);
  expect([ownedResources('daemonsets'), ownedResources('pods')]).toEqual([['pods', 'controllerrevisions'], []]);
  expect([isWorkload('jobs'), isWorkload('pods'), isWorkload('constructor')]).toEqual([true, false, false]);
});

describe('a workload', () => {
  it('that is new may adopt what it selects; one that changes is synced', () => {
    const at = object();
    expect(worksOf('statefulsets', undefined, at)).toEqual([{ kind: 'adoptAll', ref: refOf('statefulsets') }]);
    expect(worksOf('statefulsets', at, at)).toEqual([sync('statefulsets', 'x')]);
    expect(worksOf('services', undefined, at)).toEqual([sync('services', 'x')]);
    expect(worksOf('poddisruptionbudgets', undefined, at)).toEqual([sync('poddisruptionbudgets', 'x')]);
    expect(worksOf('configmaps', undefined, at)).toEqual([]);
  });

  it('that is removed leaves dependents, and creations that may be claimed', () => {
    const collect = (resource: string) => worksOf(resource, object(), undefined).find(({ kind }) => kind === 'collect');
    expect(collect('replicasets')).toEqual({ kind: 'collect', ownerUid: 'u', hasClaim: true });
    expect(collect('deployments')).toEqual({ kind: 'collect', ownerUid: 'u', hasClaim: false });
    expect(collect('configmaps')).toEqual({ kind: 'collect', ownerUid: 'u', hasClaim: false });
    expect(kindsOf(worksOf('configmaps', object({ metadata: { uid: undefined } }), undefined))).toEqual(['sync']);
  });

  it.each([
    [['foregroundDeletion'], true, true],
    [['orphan'], true, true],
    [['other', 'orphan'], true, true],
    [['other'], true, false],
    [[], true, false],
    [['orphan'], false, false],
  ])('with the finalizers %j, deleted: %s, waits for its dependents: %s', (finalizers, isDeleted, isWaiting) => {
    const after = object({ metadata: { finalizers, ...(isDeleted ? { deletionTimestamp: 't' } : {}) } });
    expect(worksOf('configmaps', object(), after)).toEqual(
      isWaiting ? [{ kind: 'finish', ref: refOf('configmaps') }] : [],
    );
  });
});

describe('an owned object', () => {
  it('concerns its controller, before and after', () => {
    const changed = worksOf(
      'replicasets',
      controlled('Deployment'),
      object({ metadata: ownedBy('Deployment', { uid: 'v' }, 'new') }),
    );
    expect(changed).toContainEqual(sync('deployments', 'owner'));
    expect(changed).toContainEqual(sync('deployments', 'new'));
    expect(worksOf('pods', undefined, controlled('Job'))).toContainEqual(sync('jobs', 'owner'));
    expect(worksOf('jobs', undefined, controlled('CronJob'))).toContainEqual(sync('cronjobs', 'owner'));
  });

  it('concerns no owner that is not its controller, or not synced', () => {
    const isSynced = (reference: object) =>
      worksOf('configmaps', undefined, object({ metadata: reference })).some(({ kind }) => kind === 'sync');
    expect(isSynced(ownedBy('Job'))).toBe(true);
    expect(isSynced(ownedBy('Job', { controller: false }))).toBe(false);
    expect(isSynced(ownedBy('Other'))).toBe(false);
  });

  it('that is removed may be the last pod that a Deployment waits for', () => {
    const podEnded = { kind: 'podEnded', ref: refOf('replicasets', 'owner') };
    expect(worksOf('pods', controlled('ReplicaSet'), undefined)).toContainEqual(podEnded);
    expect(worksOf('pods', controlled('ReplicaSet'), controlled('ReplicaSet'))).not.toContainEqual(podEnded);
    expect(kindsOf(worksOf('pods', controlled('Job'), undefined))).not.toContain('podEnded');
  });

  const owner = { apiVersion: 'apps/v1', kind: 'Other', name: 'owner', uid: 'owner-uid' };
  it('has its owner checked once, when the reference is new', () => {
    const check = { kind: 'checkOwner', namespace: 'shop', owner };
    const after = controlled('Other');
    expect(worksOf('configmaps', undefined, after)).toEqual([check]);
    expect(worksOf('configmaps', object(), after)).toEqual([check]);
    expect(worksOf('configmaps', after, after)).toEqual([]);
    expect(worksOf('configmaps', after, object({ metadata: ownedBy('Other', { controller: false }) }))).toEqual([]);
    expect(kindsOf(worksOf('configmaps', after, object({ metadata: ownedBy('Other', { uid: 'v' }) })))).toEqual([
      'checkOwner',
    ]);
  });

  it('lets its owner end when it no longer blocks it', () => {
    const finish = { kind: 'finishOwner', namespace: 'shop', owner };
    const blocking = object({ metadata: ownedBy('Other', { blockOwnerDeletion: true }) });
    expect(worksOf('configmaps', blocking, controlled('Other'))).toContainEqual(finish);
    expect(worksOf('configmaps', blocking, object())).toContainEqual(finish);
    expect(worksOf('configmaps', blocking, undefined)).toContainEqual(finish);
    expect(worksOf('configmaps', blocking, blocking)).toEqual([]);
    expect(worksOf('configmaps', controlled('Other'), undefined)).not.toContainEqual(finish);
  });
});

describe('an object without a controller', () => {
  const adopts = (resource: string, before: KubeObject | undefined, after: KubeObject) =>
    kindsOf(worksOf(resource, before, after)).includes('adopt');
  const labelled = (labels: object) => object({ metadata: { labels } });

  it.each<[string, KubeObject | undefined, KubeObject, boolean]>([
    ['it is new', undefined, object(), true],
    ['it has lost its controller', controlled('ReplicaSet'), object(), true],
    ['its labels changed', object(), labelled({ a: 'b' }), true],
    [
      'another part of it changed',
      labelled({ a: 'b' }),
      object({ metadata: { labels: { a: 'b' } }, status: {} }),
      false,
    ],
    ['it has a controller', undefined, controlled('ReplicaSet'), false],
    ['it is being deleted', undefined, object({ metadata: { deletionTimestamp: 't' } }), false],
  ])('may be adopted when %s', (_text, before, after, expected) => {
    expect(adopts('pods', before, after)).toBe(expected);
    expect(adopts('replicasets', before, after)).toBe(expected);
    expect(adopts('configmaps', before, after)).toBe(false);
  });

  it('is adopted as it is after the change', () => {
    const orphan = labelled({ a: 'b' });
    expect(worksOf('replicasets', undefined, orphan)).toContainEqual({
      kind: 'adopt',
      orphan,
      ref: refOf('replicasets'),
    });
  });
});

describe('a pod', () => {
  const pod = (labels: object, more: { metadata?: object; status?: object } = {}) =>
    object({ metadata: { labels, ...more.metadata }, status: { podIP: '10.0.0.1', ...more.status } });
  const READY = { conditions: [{ type: 'Ready', status: 'True' }] };

  it('that becomes Ready concerns the budgets and Services of its labels', () => {
    const works = worksOf('pods', pod({ a: 'b' }), pod({ a: 'b' }, { status: READY }));
    const labels = [{ a: 'b' }, { a: 'b' }];
    expect(works).toEqual([
      { kind: 'budgets', ref: refOf('poddisruptionbudgets', ''), labels },
      { kind: 'services', ref: refOf('services', ''), labels },
    ]);
  });

  it('without news concerns no budget and no Service', () => {
    expect(worksOf('pods', pod({ a: 'b' }), pod({ a: 'b' }, { status: { qosClass: 'x' } }))).toEqual([]);
  });

  it('of a batch are one work for all budgets of the namespace, with all labels and positions', () => {
    const works = requiredWorks([
      record('pods', undefined, pod({ pod: '0' }), 3),
      record('pods', undefined, pod({ pod: '1' }), 5),
    ]);
    const found = works.find(({ work }) => work.kind === 'budgets');
    expect(found).toEqual({
      of: [3, 5],
      work: { kind: 'budgets', ref: refOf('poddisruptionbudgets', ''), labels: [{ pod: '0' }, { pod: '1' }] },
    });
    expect(works.find(({ work }) => work.kind === 'services')?.work).toMatchObject({
      labels: [{ pod: '0' }, { pod: '1' }],
    });
  });

  it.each([
    [{ 'job-name': 'a' }, 'a'],
    [{ 'batch.kubernetes.io/job-name': 'b', 'job-name': 'a' }, 'b'],
    [{ other: 'c' }, undefined],
    [undefined, undefined],
  ])('with the labels %j was of the Job %s', (labels, name) => {
    expect(formerJob(object({ metadata: { labels } }))).toBe(name);
  });
});

describe('Services and what they write', () => {
  const selecting = (selector: object) => object({ spec: { selector } });

  it('with another selector read their pods again', () => {
    const reselect = { kind: 'reselect', ref: refOf('services') };
    expect(worksOf('services', selecting({ a: 'b' }), selecting({ a: 'c' }))).toContainEqual(reselect);
    expect(worksOf('services', selecting({ a: 'b' }), selecting({ a: 'b' }))).toEqual([sync('services', 'x')]);
    expect(worksOf('services', undefined, selecting({ a: 'b' }))).not.toContainEqual(reselect);
  });

  it('are synced when they or their endpoints are removed', () => {
    const named = object({ metadata: { labels: { 'kubernetes.io/service-name': 'web' } } });
    expect(worksOf('services', object(), undefined)).toContainEqual(sync('services', 'x'));
    expect(worksOf('endpoints', object(), undefined)).toContainEqual(sync('services', 'x'));
    expect(worksOf('endpointslices', named, undefined)).toContainEqual(sync('services', 'web'));
    expect(worksOf('endpointslices', object(), undefined)).not.toContainEqual(sync('services', 'x'));
    expect(worksOf('endpointslices', named, named)).toEqual([]);
    expect(worksOf('configmaps', named, undefined)).not.toContainEqual(sync('services', 'web'));
  });

  it('mirror the Endpoints that a client writes', () => {
    const mirror = { kind: 'mirror', ref: refOf('services') };
    expect(worksOf('endpoints', undefined, object())).toEqual([mirror]);
    expect(worksOf('endpoints', object(), undefined)).not.toContainEqual(mirror);
  });
});

describe('a namespace and its quotas', () => {
  it('are synced when they change, and not when they are removed', () => {
    expect(worksOf('namespaces', undefined, object())).toEqual([sync('namespaces', 'x')]);
    expect(worksOf('resourcequotas', object(), object())).toEqual([sync('resourcequotas', 'x')]);
    expect(worksOf('namespaces', object(), undefined)).not.toContainEqual(sync('namespaces', 'x'));
  });

  it('are synced when the content that every namespace has changes', () => {
    const of = (resource: string, name: string) =>
      requiredWorks([{ position: 0, ref: refOf(resource, name), after: object() }]).map(({ work }) => work);
    const namespace = sync('namespaces', 'shop', '');
    expect(of('serviceaccounts', 'default')).toEqual([namespace]);
    expect(of('configmaps', 'kube-root-ca.crt')).toEqual([namespace]);
    expect(of('configmaps', 'default')).toEqual([]);
  });

  const pod = (more: { metadata?: object; status?: object } = {}) => object(more);
  const sized = (cpu: string, reported?: string): KubeObject => ({
    ...object({
      status: { containerStatuses: [{ name: 'c', ...(reported && { resources: { requests: { cpu: reported } } }) }] },
    }),
    spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] },
  });
  it.each<[string, string, KubeObject | undefined, KubeObject | undefined, boolean]>([
    ['an object that is removed', 'configmaps', object(), undefined, true],
    ['an object that changes', 'configmaps', object(), object(), false],
    ['a pod that is created', 'pods', undefined, pod(), false],
    ['a pod that terminates', 'pods', pod(), pod({ status: { phase: 'Failed' } }), true],
    ['a pod that begins to terminate', 'pods', pod(), pod({ metadata: { deletionTimestamp: 't' } }), true],
    ['a pod that changes', 'pods', pod(), pod({ status: { phase: 'Running' } }), false],
    ['a pod with resources that its node begins to report', 'pods', sized('2'), sized('2', '2'), false],
    ['a pod that is resized and has no node', 'pods', sized('2'), sized('1'), true],
    ['a pod that becomes smaller, which its node has not done', 'pods', sized('2', '2'), sized('1', '2'), false],
    ['a pod that its node made smaller', 'pods', sized('1', '2'), sized('1', '1'), true],
    ['another object with a phase', 'configmaps', object(), object({ status: { phase: 'Failed' } }), false],
  ])('count again after %s: %s', (_text, resource, before, after, expected) => {
    expect(worksOf(resource, before, after).some((work) => JSON.stringify(work) === JSON.stringify(QUOTAS))).toBe(
      expected,
    );
  });

  it('have no quotas for what is in no namespace', () => {
    const works = requiredWorks([{ position: 0, ref: refOf('clusterroles', 'x', ''), before: object() }]);
    expect(works.map(({ work }) => work.kind)).toEqual(['collect']);
  });
});

describe('a batch', () => {
  it('has each work once, with the positions of all its records', () => {
    const works = requiredWorks([
      record('statefulsets', object(), object(), 4),
      record('statefulsets', object(), object({ status: {} }), 6),
      record('daemonsets', object(), object(), 7),
    ]);
    expect(works).toEqual([
      { of: [4, 6], work: sync('statefulsets', 'x') },
      { of: [7], work: sync('daemonsets', 'x') },
    ]);
  });

  it('has all its nodes in one work, after the others', () => {
    const node = object({ metadata: { name: 'n', namespace: undefined, uid: 'n' } });
    const works = requiredWorks([
      record('nodes', undefined, node, 1),
      record('nodes', node, undefined, 2),
      record('statefulsets', object(), object(), 3),
    ]);
    expect(works.map(({ of, work }) => [of, work.kind])).toEqual([
      [[2], 'collect'],
      [[3], 'sync'],
      [[1, 2], 'nodesChanged'],
    ]);
    expect(works.at(-1)?.work).toMatchObject({ changes: [{ after: node }, { before: node }] });
    expect(requiredWorks([])).toEqual([]);
  });
});
