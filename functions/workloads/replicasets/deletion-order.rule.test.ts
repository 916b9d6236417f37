import { describe, expect, it } from 'vitest';
import { textHash } from '../../../shared/text.ts';
import type { OwnedPod } from '../pods/owned-pod.rule.ts';
import { byLogShard, firstToDelete } from './deletion-order.rule.ts';

const NOW_MS = 1_000_000;
const podOf = (more: Partial<OwnedPod> = {}): OwnedPod => ({
  ...{ namespace: 'a', name: 'p', uid: 'u', resourceVersion: '1', labels: {}, nodeName: 'n1' },
  ...{ phase: 'Running', ready: true, readyChangedAtMs: 1_000, createdAtMs: 1_000, isDeleting: false },
  ...{ deletionCost: 0, restartsMax: 0, ...more },
});
/** Two related pods on n2. */
const relatedPods = [podOf({ nodeName: 'n2' }), podOf({ nodeName: 'n2' })];
const firstOf = (pods: readonly OwnedPod[]) => firstToDelete(pods, 1, { relatedPods, nowMs: NOW_MS })[0];
/** Ages with different integer logarithms. */
const [YOUNG_MS, OLD_MS] = [NOW_MS - 1_000, NOW_MS - 1_100];

describe('of two pods of a ReplicaSet is deleted first', () => {
  /** From the most important one: what is deleted first, and what later. */
  const CRITERIA: readonly (readonly [first: Partial<OwnedPod>, later: Partial<OwnedPod>])[] = [
    [{ phase: 'Pending' }, { phase: 'Unknown' }],
    [{ ready: false }, { ready: true }],
    [{ deletionCost: -1 }, { deletionCost: 1 }],
    [{ nodeName: 'n2' }, { nodeName: 'n1' }],
    [{ restartsMax: 2 }, { restartsMax: 1 }],
    [{ createdAtMs: YOUNG_MS }, { createdAtMs: OLD_MS }],
  ];
  const side = (rank: number, own: 0 | 1) =>
    podOf(
      Object.assign({}, ...CRITERIA.map((each, at) => each[at < rank ? 1 : at === rank ? own : own === 0 ? 1 : 0])),
    );

  it.each(CRITERIA.map((criterion, rank) => [criterion[0], rank] as const))(
    'that with %j, whatever the less important criteria say',
    (_, rank) => {
      const [first, later] = [side(rank, 0), side(rank, 1)];
      expect(firstOf([first, later])).toBe(first);
      expect(firstOf([later, first])).toBe(first);
    },
  );

  it.each([
    ['is not bound', { nodeName: '' }, { nodeName: 'n2', phase: 'Pending', ready: false }],
    ['is in an unknown phase', { phase: 'Unknown' }, { phase: 'Running', ready: false }],
    ['became Ready later', { readyChangedAtMs: YOUNG_MS }, { readyChangedAtMs: OLD_MS, restartsMax: 9 }],
    ['has an unknown time of readiness', { readyChangedAtMs: undefined }, { readyChangedAtMs: YOUNG_MS }],
    ['became Ready in the future', { readyChangedAtMs: NOW_MS }, { readyChangedAtMs: YOUNG_MS }],
    [
      'has the lower uid at about the same age',
      { createdAtMs: OLD_MS, uid: 'a' },
      { createdAtMs: OLD_MS - 9, uid: 'b' },
    ],
  ] as const)('that which %s', (_, one, other) => {
    const [first, later] = [podOf(one), podOf(other)];
    expect(firstOf([first, later])).toBe(first);
    expect(firstOf([later, first])).toBe(first);
  });

  it('neither by a time of readiness while they are not Ready, nor by the uid at the same time', () => {
    const late = podOf({ ready: false, readyChangedAtMs: YOUNG_MS, restartsMax: 1 });
    const early = podOf({ ready: false, readyChangedAtMs: OLD_MS, restartsMax: 2 });
    expect(firstOf([late, early])).toBe(early);
    const [one, other] = [podOf({ uid: 'b' }), podOf({ uid: 'a' })];
    expect(firstOf([one, other])).toBe(one);
    expect(firstOf([other, one])).toBe(other);
  });
});

it('deletes as many as are wanted, and all in the order in which they came', () => {
  const pods = [
    podOf({ name: 'ready' }),
    podOf({ name: 'pending', phase: 'Pending' }),
    podOf({ name: 'new', ready: false }),
  ];
  const names = (count: number) =>
    firstToDelete(pods, count, { relatedPods: [], nowMs: NOW_MS }).map(({ name }) => name);
  expect(names(0)).toEqual([]);
  expect(names(2)).toEqual(['pending', 'new']);
  expect(names(3)).toEqual(['ready', 'pending', 'new']);
});

it('brings the pods of one shard of the log together, in their order', () => {
  const pods = Array.from({ length: 40 }, (_, index) => podOf({ name: `p-${index}` }));
  const ordered = byLogShard(pods, { namespace: 'a', logShards: 4 });
  expect(ordered).toHaveLength(40);
  const shardOf = ({ name }: OwnedPod): number => textHash(`a/${name}`) % 4;
  const expected = [0, 1, 2, 3].flatMap((shard) => pods.filter((pod) => shardOf(pod) === shard));
  expect(ordered).toEqual(expected);
  expect(byLogShard(ordered, { namespace: 'a', logShards: 4 })).toEqual(ordered);
  expect(byLogShard(pods, { namespace: 'a', logShards: 1 })).toEqual(pods);
  expect(ordered).not.toEqual(pods);
});
