import { describe, expect, it } from 'vitest';
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { selectorFromSpec } from '../../shared/kubernetes/selectors.ts';
import {
  availableAfterMs,
  candidatesOf,
  decideClaims,
  isActive,
  isAvailable,
  isReleased,
  isTracked,
  ownedPodOf,
  TRACKING,
  withoutTracking,
} from './owned-pods.rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

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
      isSingle: false,
      deletionCost: 0,
      restartsMax: 0,
    });
  });

  it('is its place, its readiness and its restarts', () => {
    const pod: KubePod = {
      metadata: {
        ...{ name: 'p', namespace: 'a', uid: 'u', resourceVersion: '7', labels: { app: 'x' } },
        ...{
          annotations: { [COST]: '-3', [OFFLINE_STOP_AFTER]: '2h' },
          creationTimestamp: '2026-01-01T00:00:00Z',
          deletionTimestamp: 'x',
        },
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
      ...{ isDeleting: true, isSingle: true, deletionCost: -3, restartsMax: 4 },
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
    expect(deletionCost).toBe(cost);
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

  it('WR-27 are owned, adopted or released by their labels and their controller', () => {
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

  it('WR-25 are neither adopted nor released while the owner is deleted', () => {
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
