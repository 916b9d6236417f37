import { describe, expect, it } from 'vitest';
import { replayed } from '../../../test/support/replayed.ts';
import type { OwnedPod } from '../owned-pods.rule.ts';
import { podsCreatedDraft, podsDeletedDraft, replicaSetReplay } from './decisions.ts';
import { byLogShard, firstToDelete } from './rule.ts';

const NOW_MS = 100_000_000;
const setOf = (replicas?: number) => ({
  metadata: { namespace: 'd', name: 'web', uid: 'u' },
  ...(replicas !== undefined && { spec: { replicas } }),
});
const ABOUT = { kind: 'ReplicaSet', namespace: 'd', name: 'web', uid: 'u' };
const pod = (name: string, over: Partial<OwnedPod> = {}): OwnedPod => ({
  name,
  namespace: 'd',
  uid: `uid-${name}`,
  resourceVersion: '7',
  labels: { app: 'web' },
  nodeName: 'n1',
  phase: 'Running',
  ready: true,
  readyChangedAtMs: 1_000,
  createdAtMs: 900,
  isDeleting: false,
  deletionCost: 0,
  restartsMax: 0,
  isSingle: false,
  ...over,
});

describe('the record of created pods', () => {
  it.each([
    [3, { active: 1, held: 0 }, '3 pods are wanted and 1 are active', { replicas: 3, active: 1 }, 2],
    [undefined, { active: 0, held: 0 }, '1 pods are wanted and 0 are active', { replicas: 1, active: 0 }, 1],
    [
      4,
      { active: 1, held: 2 },
      '4 pods are wanted and 1 are active, 2 terminate and must not run twice',
      { replicas: 4, active: 1, held: 2 },
      1,
    ],
  ])('of a set of %s with %j replays', (replicas, counts, text, inputs, missing) => {
    const draft = podsCreatedDraft('ReplicaSet', setOf(replicas), { ...counts, names: ['a', 'b'] }, NOW_MS);
    expect(draft).toEqual({
      act: 'PodsCreated',
      about: ABOUT,
      atMs: NOW_MS,
      reason: `${text}: created a, b`,
      rule: 'missingPods',
      inputs,
      outcome: { missing },
    });
    expect(replayed(draft, replicaSetReplay)).toEqual({ missing });
  });
});

describe('the record of deleted pods', () => {
  const pods = [
    pod('a'),
    pod('b', { ready: false }),
    pod('c', { phase: 'Pending', nodeName: '' }),
    pod('d', { deletionCost: -5 }),
    pod('e'),
    pod('deleted', { isDeleting: true }),
    pod('failed', { phase: 'Failed' }),
    pod('ended', { phase: 'Succeeded' }),
  ];
  const active = pods.slice(0, 5);
  const relatedPods = [...active, pod('other', { nodeName: 'n2' })];
  const chosen = byLogShard(firstToDelete(active, 3, { relatedPods, nowMs: NOW_MS }), { namespace: 'd', logShards: 4 });
  const names = chosen.map(({ name }) => name);
  const draftOf = (before: number, count: number, replicas?: number) =>
    podsDeletedDraft(
      'ReplicaSet',
      setOf(replicas),
      {
        decision: { create: 0, remove: chosen },
        pods,
        relatedPods,
        names: names.slice(before, before + count),
        before,
        logShards: 4,
      },
      NOW_MS,
    );

  it('has what the order reads of the active pods, and no more', () => {
    const draft = draftOf(0, 3, 2);
    expect(draft).toMatchObject({
      act: 'PodsDeleted',
      about: ABOUT,
      atMs: NOW_MS,
      reason: `2 pods are wanted and 5 are active: deleted ${names.join(', ')}`,
      rule: 'surplusPods',
      outcome: { names },
    });
    expect(draft.inputs).toEqual({
      replicas: 2,
      pods: active.map(
        ({ namespace: _n, resourceVersion: _r, labels: _l, isDeleting: _d, isSingle: _s, ...rest }) => rest,
      ),
      relatedOn: ['n1', 'n1', '', 'n1', 'n1', 'n2'],
      before: 0,
      count: 3,
      logShards: 4,
    });
  });

  it.each([
    [0, 3],
    [0, 1],
    [1, 2],
  ])('of a transaction after %i deletions, of %i pods, replays', (before, count) => {
    const draft = draftOf(before, count, 2);
    expect(draft.reason).toContain(`and ${5 - before} are active`);
    expect(replayed(draft, replicaSetReplay)).toEqual({ names: names.slice(before, before + count) });
    expect(replayed(draft, replicaSetReplay)).toEqual(draft.outcome);
  });

  it('of a set without a number wants one', () => {
    expect(draftOf(0, 3).inputs).toMatchObject({ replicas: 1 });
  });

  it('deletes 500 in one sync at most', () => {
    const many = Array.from({ length: 502 }, (_, index) => pod(`p${index}`));
    const of = { decision: { create: 0, remove: many }, relatedPods: [], before: 0, logShards: 1 };
    const draft = podsDeletedDraft(
      'ReplicaSet',
      setOf(0),
      { ...of, pods: many, names: many.map(({ name }) => name) },
      NOW_MS,
    );
    expect((replayed(draft, replicaSetReplay) as { names: string[] }).names).toHaveLength(500);
  });
});
