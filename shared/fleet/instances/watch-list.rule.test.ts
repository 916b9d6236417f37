import { describe, expect, it } from 'vitest';
import type { CloudAnswer } from './instance.ts';
import {
  CALLS_PER_TICK_MAX,
  type CloudSeen,
  IDS_PER_CALL_MAX,
  isWatched,
  liftCloudTaints,
  NOTHING_SEEN,
  outOfServiceTaintOf,
  pollStrides,
  seenAfter,
} from './watch-list.rule.ts';

const EC2 = 'aws:///us-east-1a/i-0123456789abcdef0';
const running: CloudAnswer = { kind: 'found', state: 'running', launchedAtMs: 1 };
const failed: CloudAnswer = { kind: 'failed', cause: 'throttled', message: 'no' };

describe('EC2 is asked about', () => {
  it.each([
    ['an instance that is not Ready', { providerId: EC2, ready: 'False', uninitialised: false }, true],
    ['an instance without a Ready condition', { providerId: EC2, ready: undefined, uninitialised: false }, true],
    ['an instance that is Ready', { providerId: EC2, ready: 'True', uninitialised: false }, false],
    ['a Ready node that is not initialised', { providerId: '', ready: 'True', uninitialised: true }, true],
    ['an edge machine', { providerId: '', ready: 'Unknown', uninitialised: false }, false],
    ['a machine of another cloud', { providerId: 'k3s://n', ready: 'Unknown', uninitialised: false }, false],
    [
      'what should be one and cannot be read',
      { providerId: 'aws:///x/y', ready: 'Unknown', uninitialised: false },
      true,
    ],
  ] as const)('%s: %j is %s', (_, node, watched) => {
    expect(isWatched(node)).toBe(watched);
  });
});

describe('the out-of-service taint', () => {
  const ours = { key: 'node.kubernetes.io/out-of-service', value: 'nodekeeper', effect: 'NoExecute' } as const;
  const aPersons = { ...ours, value: 'nodeshutdown' };
  const other = { key: 'a', effect: 'NoSchedule' } as const;
  const shutdown = { key: 'node.cloudprovider.kubernetes.io/shutdown', effect: 'NoSchedule' } as const;

  it('is ours by its value and effect', () => {
    expect(outOfServiceTaintOf([other])).toBe('absent');
    expect(outOfServiceTaintOf([ours])).toBe('ours');
    expect(outOfServiceTaintOf([aPersons])).toBe('others');
    expect(outOfServiceTaintOf([{ ...ours, effect: 'NoSchedule' }])).toBe('others');
  });

  it('of ours is removed with the shutdown taint, and no other is', () => {
    expect(liftCloudTaints([other, shutdown, ours])).toEqual([other]);
    expect(liftCloudTaints([other, aPersons])).toBeUndefined();
  });
});

describe('the stored state', () => {
  it('keeps its start time while the answer stays the same, through failed calls', () => {
    let seen = seenAfter(NOTHING_SEEN, running, { memory: {}, nowMs: 10 });
    expect(seen).toEqual({ memory: {}, state: 'running', sinceMs: 10, comparedMs: 10 });
    seen = seenAfter(seen, failed, { memory: {}, reported: 'throttled', nowMs: 20 });
    expect(seen).toEqual({ memory: {}, state: 'running', sinceMs: 10, comparedMs: 10, reported: 'throttled' });
    seen = seenAfter(seen, running, { memory: {}, nowMs: 30 });
    expect(seen).toEqual({ memory: {}, state: 'running', sinceMs: 10, comparedMs: 10 });
    seen = seenAfter(seen, running, { memory: {}, isCompared: true, nowMs: 35 });
    expect(seen).toEqual({ memory: {}, state: 'running', sinceMs: 10, comparedMs: 35 });
    seen = seenAfter(seen, { kind: 'notFound' }, { memory: {}, nowMs: 40 });
    expect(seen).toMatchObject({ state: 'notFound', sinceMs: 40 });
  });
});

describe('nodes per tick', () => {
  const ASKED_MAX = CALLS_PER_TICK_MAX * IDS_PER_CALL_MAX;
  const at = { nowMs: 1_000_000, periodSeconds: 5 };
  const longRunning: CloudSeen = { memory: {}, state: 'running', sinceMs: 0 };
  const rows = (open: number, longSame: number) => [
    ...Array.from({ length: open }, () => ({ seen: NOTHING_SEEN })),
    ...Array.from({ length: longSame }, () => ({ seen: longRunning })),
  ];

  it('are all nodes up to two thousand', () => {
    expect(pollStrides(rows(0, 2_000), at)).toMatchObject({ open: 1, longSame: 1 });
    expect(pollStrides(rows(2_000, 0), at)).toMatchObject({ open: 1, longSame: 1 });
    expect(pollStrides([], at)).toMatchObject({ open: 1, longSame: 1 });
  });

  it('beyond that are first those with an open answer', () => {
    expect(pollStrides(rows(100, 10_000), at)).toMatchObject({ open: 1, longSame: 6 });
    expect(pollStrides(rows(0, 10_000), at)).toMatchObject({ open: 1, longSame: 5 });
  });

  it.each([
    [5_000, 0],
    [10_000, 10_000],
    [100_000, 5],
    [5, 100_000],
    [1_500, 500],
    [1_501, 501],
  ])('never exceed the bound, and every node is polled (%i open, %i unchanged)', (open, longSame) => {
    const strides = pollStrides(rows(open, longSame), at);
    expect(open / strides.open + longSame / strides.longSame).toBeLessThanOrEqual(ASKED_MAX + 1);
    expect(strides.longSame).toBeLessThanOrEqual(Math.ceil(longSame / (ASKED_MAX / 4)) + 1);
  });

  it('count an answer as unchanged from ten periods on, but never one that must be confirmed', () => {
    const { strideOf } = pollStrides(rows(0, 10_000), at);
    const since = (state: string, agoMs: number) =>
      strideOf({ seen: { memory: {}, state, sinceMs: at.nowMs - agoMs } });
    expect(since('running', 49_999)).toBe(1);
    expect(since('running', 50_000)).toBe(5);
    expect(since('stopped', 50_000)).toBe(5);
    expect(since('notFound', 500_000)).toBe(1);
    expect(since('stopping', 500_000)).toBe(1);
  });
});
