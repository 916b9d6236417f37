import { describe, expect, it } from 'vitest';
import { textHash } from '../../../shared/text.ts';
import { type Criterion, ownedPod, pairAt } from '../../../test/support/owned-pod.ts';
import type { OwnedPod } from '../pods/owned-pod.rule.ts';
import { byLogShard, firstToDelete } from './deletion-order.rule.ts';

const NOW_MS = 1_000_000;
/** Two related pods on n2. */
const relatedPods = [ownedPod({ nodeName: 'n2' }), ownedPod({ nodeName: 'n2' })];
const firstOf = (pods: readonly OwnedPod[]) => firstToDelete(pods, 1, { relatedPods, nowMs: NOW_MS })[0];
/** Ages with different integer logarithms. */
const [YOUNG_MS, OLD_MS] = [NOW_MS - 1_000, NOW_MS - 1_100];

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
    ['became Ready in the future', { readyChangedAtMs: NOW_MS }, { readyChangedAtMs: YOUNG_MS }],
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
    firstToDelete(pods, count, { relatedPods: [], nowMs: NOW_MS }).map(({ name }) => name);
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
