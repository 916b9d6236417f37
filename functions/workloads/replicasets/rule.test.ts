import { describe, expect, it } from 'vitest';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { textHash } from '../../../shared/text.ts';
import { type Criterion, ownedPod, pairAt } from '../../../test/support/owned-pod.ts';
import type { OwnedPod } from '../owned-pods.rule.ts';
import type { KubeReplicaSet } from '../workload-types.ts';
import { byLogShard, decideReplicas, firstToDelete, replicaSetStatus, setKindOf } from './rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

const replicaSet = (replicas: number, more: Partial<KubeReplicaSet> = {}): KubeReplicaSet => ({
  metadata: { name: 'web', namespace: 'default', uid: 'rs', generation: 1 },
  spec: { replicas, selector: { matchLabels: { app: 'a' } }, template: { metadata: { labels: { app: 'a' } } } },
  ...more,
});

const settledMs = NOW_MS - HOUR_MS;
const pod = (name: string, more: Partial<OwnedPod> = {}): OwnedPod =>
  ownedPod({ name, uid: name, labels: { app: 'a' }, readyChangedAtMs: settledMs, createdAtMs: settledMs, ...more });
const notReady = { ready: false };
const pending = { phase: 'Pending', ready: false } as const;

const decide = (set: KubeReplicaSet, pods: readonly OwnedPod[], relatedPods: readonly OwnedPod[] = []) =>
  decideReplicas({ replicaSet: set, pods, relatedPods, nowMs: NOW_MS });
const removed = (replicas: number, pods: readonly OwnedPod[], relatedPods: readonly OwnedPod[] = []) =>
  decide(replicaSet(replicas), pods, relatedPods).remove.map(({ name }) => name);
const statusOf = (set: KubeReplicaSet, pods: readonly OwnedPod[]) =>
  replicaSetStatus({ replicaSet: set, pods, nowMs: NOW_MS }, undefined);

describe('the number of pods of a ReplicaSet', () => {
  it('WR-01 is left as it is when it fits', () => {
    const pods = [pod('a'), pod('b')];
    expect(decide(replicaSet(2), pods)).toEqual({ create: 0, remove: [] });
    expect(statusOf(replicaSet(2), pods)?.replicas).toBe(2);
  });

  it('WR-07 grows by 500 in one sync', () => {
    expect(decide(replicaSet(600), []).create).toBe(500);
    const pods = Array.from({ length: 500 }, (_, index) => pod(`p${index}`));
    expect(decide(replicaSet(600), pods).create).toBe(100);
    expect(decide(replicaSet(0), [...pods, pod('p500')]).remove).toHaveLength(500);
  });

  it('WR-35 replaces a terminating pod at once, WR-37 a failed one without touching it', () => {
    const pods = [pod('a'), pod('b'), pod('c', { isDeleting: true })];
    expect(decide(replicaSet(3), pods)).toMatchObject({ create: 1, remove: [] });
    expect(decide(replicaSet(2), [pod('a', { phase: 'Failed' }), pod('b')])).toMatchObject({ create: 1, remove: [] });
  });

  it('counts a terminating pod that must not run twice as there, and never removes it or shows it', () => {
    const held = pod('held', { isDeleting: true, isSingle: true });
    const pods = [pod('a'), pod('b'), held];
    expect(decide(replicaSet(3), pods)).toMatchObject({ create: 0, remove: [] });
    expect(decide(replicaSet(5), pods)).toMatchObject({ create: 2, remove: [] });
    // What is held is no surplus.
    expect(decide(replicaSet(2), pods)).toMatchObject({ create: 0, remove: [] });
    expect(decide(replicaSet(3), [...pods, { ...held, name: 'other' }])).toMatchObject({ create: 0, remove: [] });
    expect(removed(1, pods)).toHaveLength(1);
    expect(removed(0, pods)).not.toContain('held');
    expect(statusOf(replicaSet(3), pods)?.replicas).toBe(2);
    const ended = (phase: 'Failed' | 'Succeeded') => decide(replicaSet(3), [pod('a'), pod('b'), { ...held, phase }]);
    expect([ended('Failed').create, ended('Succeeded').create]).toEqual([1, 1]);
    expect(decide(replicaSet(3), [pod('running', { isSingle: true })])).toMatchObject({ create: 2, remove: [] });
  });

  it('WR-25 is not changed while the ReplicaSet is being deleted; its own pods count', () => {
    const deleting = replicaSet(3);
    deleting.metadata.deletionTimestamp = formatTime(NOW_MS);
    expect(decide(deleting, [pod('a')])).toMatchObject({ create: 0, remove: [] });
    expect(statusOf(deleting, [pod('a')])?.replicas).toBe(1);
  });

  it('is looked at again one millisecond after a Ready pod becomes available', () => {
    const set = replicaSet(1);
    set.spec!.minReadySeconds = 10;
    const ready = pod('a', { readyChangedAtMs: NOW_MS - 4_000 });
    expect(decide(set, [ready]).lookAgainAtMs).toBe(NOW_MS + 6_001);
    const later = pod('b', { readyChangedAtMs: NOW_MS - 1_000 });
    expect(decide(set, [later, ready]).lookAgainAtMs).toBe(NOW_MS + 6_001);
    expect(decide(set, [pod('a', { readyChangedAtMs: NOW_MS - 10_000 })]).lookAgainAtMs).toBe(NOW_MS + 1);
    expect(decide(set, [pod('a', { readyChangedAtMs: NOW_MS - 10_001 })]).lookAgainAtMs).toBeUndefined();
  });
});

describe('the order of deletion', () => {
  it('WR-09 not Ready before Ready', () => {
    expect(removed(1, [pod('A'), pod('B', notReady)])).toEqual(['B']);
  });

  it('WR-11 not assigned, Pending, not Ready, then Ready', () => {
    const pods = [
      pod('A'),
      pod('B', { nodeName: 'n2' }),
      pod('C', { nodeName: 'n3', ...notReady }),
      pod('D', { nodeName: 'n3', ...pending }),
      pod('E', { nodeName: '', ...pending }),
    ];
    expect(removed(2, pods)).toEqual(['E', 'D', 'C']);
  });

  it('WR-13 from the node with more related pods', () => {
    const [a, b] = [pod('A'), pod('B', { nodeName: 'n2' })];
    expect(removed(1, [a, b], [a, b, pod('X', { nodeName: 'n2' })])).toEqual(['B']);
    expect(removed(1, [a, b], [a, b, pod('X')])).toEqual(['A']);
  });

  it('WR-15 Pending before Running that is not Ready', () => {
    expect(removed(1, [pod('A', pending), pod('B', notReady)])).toEqual(['A']);
  });

  it('WR-17 the lower deletion cost before co-location', () => {
    const [a, b] = [pod('A', { deletionCost: 100 }), pod('B', { deletionCost: 10, nodeName: 'n2' })];
    expect(removed(1, [a, b], [a, b, pod('X'), pod('Y')])).toEqual(['B']);
  });

  it('WR-19 Ready for a shorter time, by its logarithm', () => {
    const [a, b] = [
      pod('A', { readyChangedAtMs: NOW_MS - 2 * HOUR_MS }),
      pod('B', { readyChangedAtMs: NOW_MS - 5 * HOUR_MS }),
    ];
    expect(removed(1, [b, a])).toEqual(['A']);
    // 5 and 5.5 hours are in one bucket: the lower uid.
    expect(removed(1, [pod('C', { readyChangedAtMs: NOW_MS - 5.5 * HOUR_MS }), b])).toEqual(['B']);
  });

  it('WR-21 more restarts first when both are Ready since the same time', () => {
    expect(removed(1, [pod('B'), pod('A', { restartsMax: 9_001 })])).toEqual(['A']);
  });
});

describe('the status of a ReplicaSet', () => {
  it('WR-31 counts fully labelled, ready and available pods', () => {
    const set = replicaSet(2);
    set.spec!.template = { metadata: { labels: { a: '1', b: '2' } } };
    const pods = [pod('A', { labels: { a: '1', b: '2' } }), pod('B', { labels: { a: '1' } })];
    expect(statusOf(set, pods)).toEqual({
      replicas: 2,
      fullyLabeledReplicas: 1,
      readyReplicas: 2,
      availableReplicas: 2,
      observedGeneration: 1,
    });
  });

  it('is not written when it is equal', () => {
    const status = {
      replicas: 1,
      fullyLabeledReplicas: 1,
      readyReplicas: 1,
      availableReplicas: 1,
      observedGeneration: 1,
    };
    expect(statusOf(replicaSet(1, { status }), [pod('a')])).toBeUndefined();
    expect(statusOf(replicaSet(1, { status: { ...status, observedGeneration: 0 } }), [pod('a')])).toEqual(status);
  });

  it('WR-33 loses ReplicaFailure with the first sync without a failure, and keeps its first text until then', () => {
    const failure = { reason: 'FailedCreate' as const, message: 'quota' };
    const failed = replicaSetStatus({ replicaSet: replicaSet(1), pods: [], nowMs: NOW_MS }, failure);
    expect(failed?.conditions).toEqual([
      {
        type: 'ReplicaFailure',
        status: 'True',
        reason: 'FailedCreate',
        message: 'quota',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ]);
    const stored = replicaSet(1, { status: failed! });
    expect(
      replicaSetStatus({ replicaSet: stored, pods: [], nowMs: NOW_MS }, { ...failure, message: 'x' }),
    ).toBeUndefined();
    expect(statusOf(stored, [pod('a')])?.conditions).toBeUndefined();
  });
});

const ORDERED_AT_MS = 1_000_000;
/** Two related pods on n2. */
const relatedPods = [ownedPod({ nodeName: 'n2' }), ownedPod({ nodeName: 'n2' })];
const firstOf = (pods: readonly OwnedPod[]) => firstToDelete(pods, 1, { relatedPods, nowMs: ORDERED_AT_MS })[0];
/** Ages with different integer logarithms. */
const [YOUNG_MS, OLD_MS] = [ORDERED_AT_MS - 1_000, ORDERED_AT_MS - 1_100];

describe('of two pods of a ReplicaSet is deleted first', () => {
  /** The most important one first. */
  const CRITERIA: readonly Criterion[] = [
    [{ phase: 'Pending' }, { phase: 'Unknown' }],
    [{ ready: false }, { ready: true }],
    [{ deletionCost: -1 }, { deletionCost: 1 }],
    [{ nodeName: 'n2' }, { nodeName: 'n1' }],
    [{ restartsMax: 2 }, { restartsMax: 1 }],
    [{ createdAtMs: YOUNG_MS }, { createdAtMs: OLD_MS }],
  ];
  it.each(CRITERIA.map((criterion, rank) => [criterion[0], rank] as const))(
    'that with %j, whatever the less important criteria say',
    (_, rank) => {
      const [first, later] = pairAt(CRITERIA, rank).map(ownedPod) as [OwnedPod, OwnedPod];
      expect(firstOf([first, later])).toBe(first);
      expect(firstOf([later, first])).toBe(first);
    },
  );

  it.each([
    ['is not bound', { nodeName: '' }, { nodeName: 'n2', phase: 'Pending', ready: false }],
    ['is in an unknown phase', { phase: 'Unknown' }, { phase: 'Running', ready: false }],
    ['became Ready later', { readyChangedAtMs: YOUNG_MS }, { readyChangedAtMs: OLD_MS, restartsMax: 9 }],
    ['has an unknown time of readiness', { readyChangedAtMs: undefined }, { readyChangedAtMs: YOUNG_MS }],
    ['became Ready in the future', { readyChangedAtMs: ORDERED_AT_MS }, { readyChangedAtMs: YOUNG_MS }],
    [
      'has the lower uid at about the same age',
      { createdAtMs: OLD_MS, uid: 'a' },
      { createdAtMs: OLD_MS - 9, uid: 'b' },
    ],
  ] as const)('that which %s', (_, one, other) => {
    const [first, later] = [ownedPod(one), ownedPod(other)];
    expect(firstOf([first, later])).toBe(first);
    expect(firstOf([later, first])).toBe(first);
  });

  it('neither one for a time of readiness while they are not Ready, nor for its uid at the same time', () => {
    const late = ownedPod({ ready: false, readyChangedAtMs: YOUNG_MS, restartsMax: 1 });
    const early = ownedPod({ ready: false, readyChangedAtMs: OLD_MS, restartsMax: 2 });
    expect(firstOf([late, early])).toBe(early);
    const [one, other] = [ownedPod({ uid: 'b' }), ownedPod({ uid: 'a' })];
    expect(firstOf([one, other])).toBe(one);
    expect(firstOf([other, one])).toBe(other);
  });
});

it('as many are deleted as are asked for, and all in the order in which they came', () => {
  const pods = [
    ownedPod({ name: 'ready' }),
    ownedPod({ name: 'pending', phase: 'Pending' }),
    ownedPod({ name: 'new', ready: false }),
  ];
  const names = (count: number) =>
    firstToDelete(pods, count, { relatedPods: [], nowMs: ORDERED_AT_MS }).map(({ name }) => name);
  expect(names(0)).toEqual([]);
  expect(names(2)).toEqual(['pending', 'new']);
  expect(names(3)).toEqual(['ready', 'pending', 'new']);
});

it('the pods of one shard of the log are deleted together, in their order', () => {
  const pods = Array.from({ length: 40 }, (_, index) => ownedPod({ name: `p-${index}` }));
  const ordered = byLogShard(pods, { namespace: 'default', logShards: 4 });
  expect(ordered).toHaveLength(40);
  const shardOf = ({ name }: OwnedPod): number => textHash(`default/${name}`) % 4;
  const expected = [0, 1, 2, 3].flatMap((shard) => pods.filter((pod) => shardOf(pod) === shard));
  expect(ordered).toEqual(expected);
  expect(byLogShard(ordered, { namespace: 'default', logShards: 4 })).toEqual(ordered);
  expect(byLogShard(pods, { namespace: 'default', logShards: 1 })).toEqual(pods);
  expect(ordered).not.toEqual(pods);
});

it('a ReplicaSet is used as it is stored', () => {
  const { kind, component, asReplicaSet } = setKindOf('replicasets');
  expect([kind, component]).toEqual(['ReplicaSet', 'replicaset-controller']);
  const stored = { metadata: { name: 'a' } };
  expect(asReplicaSet(stored)).toBe(stored);
});

it('the selector of a ReplicationController is a map of labels', () => {
  const { kind, component, asReplicaSet } = setKindOf('replicationcontrollers');
  expect([kind, component]).toEqual(['ReplicationController', 'replication-controller']);
  const metadata = { name: 'a' };
  expect(asReplicaSet({ metadata, spec: { replicas: 2, selector: { app: 'web' } } })).toEqual({
    metadata,
    spec: { replicas: 2, selector: { matchLabels: { app: 'web' } } },
  });
  expect(asReplicaSet({ metadata })).toEqual({ metadata, spec: { selector: { matchLabels: {} } } });
});
