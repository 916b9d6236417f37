import { describe, expect, it } from 'vitest';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { ownedPod } from '../../../test/support/owned-pod.ts';
import type { OwnedPod } from '../pods/owned-pod.rule.ts';
import type { KubeReplicaSet } from '../workload-types.ts';
import { decideReplicas, replicaSetStatus } from './rule.ts';

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
