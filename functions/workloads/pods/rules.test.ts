/** Rules that all workload controllers use: names, claims, batches, conditions, templates, revisions of their pods. */
import { describe, expect, it } from 'vitest';
import type { KubeControllerRevision, KubeObject, KubePod } from '../../../shared/kinds/types.ts';
import { selectorFromSpec } from '../../../shared/kubernetes/selectors.ts';
import { candidatesOf, decideClaims } from './claims.rule.ts';
import { NAME_ALPHABET, podNameFor, prefixOf } from './generated-name.rule.ts';
import { scaledValue } from './int-or-percent.rule.ts';
import { availableAfterMs, isActive, isAvailable, ownedPodOf } from './owned-pod.rule.ts';
import { failureConditions, isSameConditions } from './replica-failure.rule.ts';
import { hashOf, inOrder, nextRevisionStep, surplusRevisions, templateOf } from './revisions.rule.ts';
import { slowStartBatches } from './slow-start.rule.ts';
import { isSameTemplate, templateHash } from './template.rule.ts';
import { isReleased, isTracked, withoutTracking } from './tracking.rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

describe('the name of a pod', () => {
  const name = (owner: string, seed: object = {}) => podNameFor(owner, { uid: 'u', fence: 1, position: 0, ...seed });

  it('is that of its owner with a suffix that follows from its seed', () => {
    expect(name('web')).toBe(name('web'));
    expect(name('web')).toMatch(new RegExp(`^web-[${NAME_ALPHABET}]{5}$`));
    expect(prefixOf(name('web'))).toBe('web-');
    const others = [name('web', { uid: 'v' }), name('web', { fence: 2 }), name('web', { position: 1 })];
    expect(new Set([name('web'), ...others]).size).toBe(4);
  });

  it('differs for each of a thousand positions', () => {
    expect(new Set(Array.from({ length: 1_000 }, (_, position) => name('web', { position }))).size).toBe(1_000);
  });

  it.each([
    [57, 58],
    [58, 58],
    [80, 58],
  ])('of an owner with %i characters has a prefix of %i', (characters, prefix) => {
    expect(prefixOf(name('x'.repeat(characters)))).toHaveLength(prefix);
    expect(name('x'.repeat(characters))).toHaveLength(prefix + 5);
  });
});

it.each([
  [3, 10, 'up', 3],
  ['25%', 10, 'up', 3],
  ['25%', 10, 'down', 2],
  ['100%', 7, 'down', 7],
  ['0%', 7, 'up', 0],
  ['7%', 100, 'up', 7],
  ['x%', 10, 'up', undefined],
  ['25', 10, 'up', undefined],
  ['-5%', 10, 'up', undefined],
] as const)('%j of %i, rounded %s, is %s', (value, total, round, expected) => {
  expect(scaledValue(value, total, round)).toBe(expected);
});

it.each([
  [0, undefined, []],
  [1, undefined, [1]],
  [10, undefined, [1, 2, 4, 3]],
  [15, undefined, [1, 2, 4, 8]],
  [12, 3, [1, 2, 3, 3, 3]],
])('%i operations, at most %s at a time, are the batches %j', (count, batchMax, batches) => {
  expect(slowStartBatches(count, batchMax)).toEqual(batches);
});

describe('the finalizer of a Job', () => {
  const pod = (metadata: object): KubeObject => ({ metadata: { name: 'p', ...metadata } });
  const TRACKING = 'batch.kubernetes.io/job-tracking';

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

describe('objects that may belong to an owner', () => {
  const owner: KubeObject = { metadata: { name: 'o', namespace: 'a', uid: 'o' } };
  const selector = selectorFromSpec({ matchLabels: { app: 'x' } });
  const object = (uid: string, metadata: object = {}): KubeObject => ({
    metadata: { name: uid, namespace: 'a', uid, labels: { app: 'x' }, ...metadata },
  });
  const of = (uid: string, controller = true) => ({
    ownerReferences: [{ apiVersion: 'v1', kind: 'K', name: uid, uid, controller }],
  });
  const unselected = { labels: { app: 'y' } };
  const claims = (candidates: readonly KubeObject[], of: KubeObject = owner) => {
    const { owned, adopt, release } = decideClaims(of, selector, candidates);
    return [owned, adopt, release].map((part) => part.map(({ metadata }) => metadata.uid));
  };

  it('are owned, adopted or released by their labels and their controller', () => {
    const candidates = [
      object('owned', of('o')),
      object('lost', { ...of('o'), ...unselected }),
      object('foreign', of('another')),
      object('free'),
      object('free-unselected', unselected),
      object('free-without-labels', { labels: undefined }),
      object('dependent', of('another', false)),
      object('terminating', { deletionTimestamp: 'x' }),
      object('elsewhere', { namespace: 'b' }),
      object('owned-terminating', { ...of('o'), deletionTimestamp: 'x' }),
    ];
    expect(claims(candidates)).toEqual([['owned', 'owned-terminating'], ['free', 'dependent'], ['lost']]);
  });

  it('are neither adopted nor released while the owner is deleted', () => {
    const deleted = { metadata: { ...owner.metadata, deletionTimestamp: 'x' } };
    const candidates = [object('owned', of('o')), object('lost', { ...of('o'), ...unselected }), object('free')];
    expect(claims(candidates, deleted)).toEqual([['owned'], [], []]);
  });

  it('count once when another worker adopted one that was found free', () => {
    const indexed = [object('a', of('o'))];
    const orphans = [object('a'), object('b'), object('c', of('another'))];
    expect(candidatesOf(indexed, orphans).map(({ metadata }) => metadata.uid)).toEqual(['a', 'b']);
  });
});

describe('what the controllers read of a pod', () => {
  const COST = 'controller.kubernetes.io/pod-deletion-cost';
  it('has defaults for what a new pod lacks', () => {
    expect(ownedPodOf({ metadata: { name: 'p' } })).toEqual({
      namespace: '',
      name: 'p',
      uid: '',
      resourceVersion: '',
      labels: {},
      nodeName: '',
      phase: 'Pending',
      ready: false,
      readyChangedAtMs: undefined,
      createdAtMs: undefined,
      isDeleting: false,
      deletionCost: 0,
      restartsMax: 0,
    });
  });

  it('is its place, its readiness and its restarts', () => {
    const pod: KubePod = {
      metadata: {
        ...{ name: 'p', namespace: 'a', uid: 'u', resourceVersion: '7', labels: { app: 'x' } },
        ...{ annotations: { [COST]: '-3' }, creationTimestamp: '2026-01-01T00:00:00Z', deletionTimestamp: 'x' },
      },
      spec: { nodeName: 'n1', containers: [] },
      status: {
        phase: 'Running',
        conditions: [
          { type: 'Other', status: 'False' },
          { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:01Z' },
        ],
        containerStatuses: [{ restartCount: 1 }, { restartCount: 4 }, {}],
      } as NonNullable<KubePod['status']>,
    };
    expect(ownedPodOf(pod)).toEqual({
      ...{ namespace: 'a', name: 'p', uid: 'u', resourceVersion: '7', labels: { app: 'x' }, nodeName: 'n1' },
      ...{ phase: 'Running', ready: true, readyChangedAtMs: NOW_MS + 1_000, createdAtMs: NOW_MS },
      ...{ isDeleting: true, deletionCost: -3, restartsMax: 4 },
    });
  });

  it.each([
    ['0', 0],
    ['-0', 0],
    ['12', 12],
    ['-12', -12],
    ['+1', 0],
    ['01', 0],
    ['1.5', 0],
    ['1x', 0],
    ['2147483647', 2_147_483_647],
    ['2147483648', 0],
    ['-2147483648', -2_147_483_648],
    ['-2147483649', 0],
  ])('counts the deletion cost %j as %i', (text, cost) => {
    const { deletionCost } = ownedPodOf({ metadata: { name: 'p', annotations: { [COST]: text } } });
    expect(deletionCost + 0).toBe(cost);
  });

  it.each([
    ['Pending', false, true],
    ['Running', false, true],
    ['Unknown', false, true],
    ['Running', true, false],
    ['Succeeded', false, false],
    ['Failed', false, false],
  ] as const)('in phase %s, being deleted %s, is active: %s', (phase, isDeleting, active) => {
    expect(isActive({ phase, isDeleting })).toBe(active);
  });

  it('is available after minReadySeconds, not at their end', () => {
    const pod = { ...ownedPodOf({ metadata: { name: 'p' } }), ready: true, readyChangedAtMs: 1_000 };
    expect(availableAfterMs(pod, 2)).toBe(3_000);
    expect([isAvailable(pod, 2, 3_000), isAvailable(pod, 2, 3_001)]).toEqual([false, true]);
    expect(isAvailable(pod, 0, 0)).toBe(true);
    const timeless = { ...pod, readyChangedAtMs: undefined };
    expect([isAvailable(timeless, 0, 0), isAvailable(timeless, 1, 9_999)]).toEqual([true, false]);
    expect(isAvailable({ ...pod, ready: false }, 0, 9_999)).toBe(false);
  });
});

const container = { name: 'c', image: 'i' };
const template = (more: object = {}, metadata: object = {}) => ({
  metadata: { labels: { app: 'x' }, ...metadata },
  spec: { containers: [container], ...more },
});

describe('two templates', () => {
  it.each([
    ['the label of the hash', template({}, { labels: { app: 'x', 'pod-template-hash': 'h' } })],
    ['a time of creation', template({}, { creationTimestamp: null })],
    ['the order of members', { spec: template().spec, metadata: template().metadata }],
    ['empty lists and texts', template({ volumes: [], hostname: '', nodeSelector: {} })],
    ['a default', template({ restartPolicy: 'Always' })],
  ])('are the same that differ in %s', (_, other) => {
    expect(isSameTemplate(template(), other)).toBe(true);
    expect(templateHash(template(), 1)).toBe(templateHash(other, 1));
  });

  it('are the same that differ in the spelling of a quantity', () => {
    const cpu = (text: string) => template({ containers: [{ ...container, resources: { requests: { cpu: text } } }] });
    expect(isSameTemplate(cpu('1'), cpu('1000m'))).toBe(true);
    expect(isSameTemplate(cpu('1'), cpu('1001m'))).toBe(false);
  });

  it.each([
    ['an image', template({ containers: [{ ...container, image: 'j' }] })],
    ['a label', template({}, { labels: { app: 'y' } })],
    ['an annotation', template({}, { annotations: { note: 'x' } })],
    ['a number of containers', template({ containers: [container, { ...container, name: 'd' }] })],
    ['a host name', template({ hostname: 'h' })],
  ])('are not the same that differ in %s', (_, other) => {
    expect(isSameTemplate(template(), other)).toBe(false);
    expect(templateHash(template(), undefined)).not.toBe(templateHash(other, undefined));
  });

  it('have a hash in the alphabet of names, another one after each collision', () => {
    const hashes = [undefined, 0, 1].map((count) => templateHash(template(), count));
    expect(new Set(hashes).size).toBe(3);
    for (const hash of hashes) expect(hash).toMatch(new RegExp(`^[${NAME_ALPHABET}]{1,10}$`));
  });
});

describe('the revisions of a set', () => {
  const owner = {
    object: { metadata: { name: 'web', namespace: 'a', uid: 'o', annotations: { note: 'x' } } },
    template: template(),
    collisionCount: undefined,
    hashLabel: 'hash',
  };
  const step = (revisions: readonly KubeControllerRevision[], more: object = {}) =>
    nextRevisionStep({ ...owner, ...more }, revisions);
  const created = (revisions: readonly KubeControllerRevision[], more: object = {}) => {
    const next = step(revisions, more);
    if (next.kind !== 'create') throw new Error(next.kind);
    return next.revision;
  };
  const older = created([], { template: template({ hostname: 'old' }) });

  it('begin with one, which has the template as Go writes it', () => {
    const hash = templateHash(template(), undefined);
    expect(created([])).toEqual({
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: { name: `web-${hash}`, namespace: 'a', labels: { app: 'x', hash }, annotations: { note: 'x' } },
      data: {
        spec: {
          template: {
            $patch: 'replace',
            metadata: { creationTimestamp: null, labels: { app: 'x' } },
            spec: { containers: [{ image: 'i', name: 'c', resources: {} }] },
          },
        },
      },
      revision: 1,
    });
    expect(JSON.stringify(created([]).data)).toBe(
      '{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"x"}},' +
        '"spec":{"containers":[{"image":"i","name":"c","resources":{}}]}}}}',
    );
    expect(templateOf(created([]))).toEqual({
      metadata: { labels: { app: 'x' } },
      spec: { containers: [{ image: 'i', name: 'c', resources: {} }] },
    });
    expect('annotations' in created([], { object: { metadata: { name: 'web' } } }).metadata).toBe(false);
    const long = created([], { object: { metadata: { name: 'x'.repeat(250) } } });
    expect(long.metadata.name).toBe(`${'x'.repeat(223)}-${hash}`);
  });

  it('go on with the next number, stay current, and are numbered again when an old template returns', () => {
    const first = { ...older, revision: 4 };
    const next = created([first]);
    expect(next.revision).toBe(5);
    expect(step([next, first])).toEqual({ kind: 'current', current: next });
    expect(step([{ ...next, revision: 4 }, first])).toEqual({
      kind: 'renumber',
      previous: { ...next, revision: 4 },
      revision: 5,
    });
    expect(step([{ ...next, revision: 3 }, first])).toMatchObject({ kind: 'renumber', revision: 5 });
    const twin = { ...next, revision: 9, metadata: { ...next.metadata, name: 'twin' } };
    expect(step([twin, next])).toEqual({ kind: 'current', current: twin });
  });

  const named = (name: string, revision?: number, creationTimestamp?: string): KubeControllerRevision => ({
    metadata: { name, ...(creationTimestamp === undefined ? {} : { creationTimestamp }) },
    ...(revision === undefined ? {} : { revision }),
  });
  const names = (revisions: readonly KubeControllerRevision[]) => revisions.map(({ metadata }) => metadata.name);

  it('are in order of number, age and name', () => {
    const shuffled = [named('d', 2), named('c', 1, '2026'), named('b', 1, '2025'), named('a', 1, '2026'), named('e')];
    expect(names(inOrder(shuffled))).toEqual(['e', 'b', 'a', 'c', 'd']);
    expect(names(inOrder(shuffled.toReversed()))).toEqual(['e', 'b', 'a', 'c', 'd']);
  });

  it('have a hash in their label, or their name', () => {
    expect(hashOf({ metadata: { name: 'n', labels: { hash: 'h' } } }, 'hash')).toBe('h');
    expect(hashOf({ metadata: { name: 'n', labels: { other: 'h' } } }, 'hash')).toBe('n');
  });

  it.each([
    [2, false, ['b']],
    [3, false, []],
    [0, false, ['b', 'c', 'd']],
    [3, true, ['b']],
    [4, true, []],
    [0, true, ['b', 'c', 'd']],
  ])('beyond a limit of %i, live ones counted %s, are %j', (limit, countsLive, expected) => {
    const old = [named('d', 4), named('a', 1), named('c', 3), named('b', 2)];
    const isLive = ({ metadata }: KubeControllerRevision) => metadata.name === 'a';
    expect(names(surplusRevisions(old, limit, isLive, countsLive))).toEqual(expected);
  });
});
