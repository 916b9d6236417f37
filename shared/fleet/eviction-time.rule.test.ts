import { describe, expect, it } from 'vitest';
import { aTaint } from '../../test/support/eviction-world.ts';
import type { Taint, Toleration } from '../kubernetes/kubernetes.ts';
import {
  type EvictionQuestion,
  type NodeSigns,
  removalVerdict,
  timerChange,
  evictionVerdict as verdict,
} from './eviction-time.rule.ts';
import {
  type NoExecuteTaint,
  noExecuteTaints,
  stampedTaints,
  TAINT_NOT_READY,
  TAINT_UNREACHABLE,
  withTaintTimes,
} from './nodes/taint.ts';

const taint = (key: string, addedAtMs?: number, value = ''): NoExecuteTaint => ({ key, value, addedAtMs });
const exists = (key: string, tolerationSeconds?: number): Toleration => ({
  key,
  operator: 'Exists',
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});

/** Evaluated long after every taint and binding, unless stated otherwise. */
const evictionVerdict = (question: Omit<EvictionQuestion, 'nowMs'> & { nowMs?: number }) =>
  verdict({ nowMs: 1_000_000, ...question });

describe('evictionVerdict', () => {
  it('counts from the taint when the pod was bound before it', () => {
    expect(
      evictionVerdict({ taints: [taint('a', 5_000)], tolerations: [exists('a', 60)], boundAtMs: 1_000 }),
    ).toMatchObject({ kind: 'due', atMs: 65_000, taintKey: 'a', reason: 'a is tolerated for 60 s' });
  });

  it('counts from the binding when the taint was added before it', () => {
    expect(
      evictionVerdict({ taints: [taint('a', 5_000)], tolerations: [exists('a', 60)], boundAtMs: 9_000 }),
    ).toMatchObject({ atMs: 69_000 });
  });

  it('uses the earliest of several taints, each with its own time', () => {
    expect(
      evictionVerdict({
        taints: [taint('a', 0), taint('b', 50_000)],
        tolerations: [exists('a', 100), exists('b', 20)],
        boundAtMs: 0,
      }),
    ).toMatchObject({ atMs: 70_000, taintKey: 'b' });
  });

  it('counts a taint without a time from now on, however long the pod has been bound', () => {
    const question = { taints: [taint('a')], tolerations: [exists('a', 10)], boundAtMs: 3_000 };
    expect(evictionVerdict({ ...question, nowMs: 90_000 })).toMatchObject({ atMs: 100_000 });
    expect(evictionVerdict({ ...question, nowMs: 95_000 })).toMatchObject({ atMs: 105_000 });
  });

  it('evicts a pod without toleration now, even when the taint time was rounded up', () => {
    expect(evictionVerdict({ taints: [taint('a', 5_000)], tolerations: [], boundAtMs: 1_000 })).toMatchObject({
      kind: 'due',
      atMs: 1_000,
      reason: 'a is not tolerated',
    });
  });

  it('is never when all taints are tolerated without limit; none when there is nothing to tolerate', () => {
    expect(evictionVerdict({ taints: [taint('a', 0)], tolerations: [exists('a')], boundAtMs: 0 }).kind).toBe('never');
    expect(evictionVerdict({ taints: [], tolerations: [], boundAtMs: 0 }).kind).toBe('none');
    expect(evictionVerdict({ taints: [taint('a', 0)], tolerations: [], boundAtMs: undefined }).kind).toBe('none');
  });

  it('delays evictions for our own taints until the new grace period is over, and only those', () => {
    const question = { tolerations: [], boundAtMs: 0, lifecycleNotBeforeMs: 40_000 };
    expect(evictionVerdict({ ...question, taints: [taint('node.kubernetes.io/unreachable', 0)] })).toMatchObject({
      atMs: 40_000,
      reason: 'node.kubernetes.io/unreachable is not tolerated, delayed by the grace period after a controller outage',
    });
    expect(evictionVerdict({ ...question, taints: [taint('maintenance', 0)] })).toMatchObject({ atMs: 0 });
  });
});

describe('timerChange', () => {
  const due = (atMs: number) => ({ kind: 'due', atMs, taintKey: 'a', reason: '' }) as const;
  const none = { kind: 'none', reason: '' } as const;
  it('fires from the due millisecond on', () => {
    expect(timerChange(due(100), 100, 99)).toEqual({ kind: 'keep', atMs: 100 });
    expect(timerChange(due(100), 100, 100)).toEqual({ kind: 'fire' });
  });
  it('schedules, moves, cancels and leaves alone', () => {
    expect(timerChange(due(100), undefined, 0)).toEqual({ kind: 'schedule', atMs: 100 });
    expect(timerChange(due(100), 50, 0)).toEqual({ kind: 'move', fromMs: 50, atMs: 100 });
    expect(timerChange(none, 50, 0)).toEqual({ kind: 'cancel', fromMs: 50 });
    expect(timerChange(none, undefined, 0)).toEqual({ kind: 'nothing' });
  });
});

describe('taint times', () => {
  it('reads NoExecute taints only, and treats an unreadable time as absent', () => {
    expect(
      noExecuteTaints([
        { key: 'a', effect: 'NoSchedule' },
        { key: 'b', value: 'x', effect: 'NoExecute', timeAdded: '1970-01-01T00:00:01Z' },
        { key: 'c', effect: 'NoExecute', timeAdded: 'junk' },
        { key: 'd', effect: 'NoExecute' },
      ]),
    ).toEqual([taint('b', 1_000, 'x'), taint('c'), taint('d')]);
  });

  it('keeps the time of a rewritten taint, restarts it on a new value, and stamps new ones, whatever was sent', () => {
    const timed = (key: string, second: number, value?: string): Taint => ({
      key,
      ...(value === undefined ? {} : { value }),
      effect: 'NoExecute',
      timeAdded: `1970-01-01T00:00:0${second}Z`,
    });
    const before = [timed('a', 1), timed('b', 2, 'x')];
    const after: Taint[] = [
      { key: 'a', effect: 'NoExecute' },
      timed('b', 2, 'y'),
      timed('c', 3),
      { key: 'd', effect: 'NoSchedule' },
    ];
    const stamped = [timed('a', 1), timed('b', 9, 'y'), timed('c', 9), { key: 'd', effect: 'NoSchedule' }];
    expect(withTaintTimes(before, after, 8_001)).toEqual(stamped);
    expect(withTaintTimes(before, [timed('a', 7), ...after.slice(1)], 8_001)).toEqual(stamped);
  });

  it('stamps stored taints that have no time, and only those', () => {
    const stored: Taint[] = [
      { key: 'a', effect: 'NoExecute' },
      { key: 'b', effect: 'NoExecute', timeAdded: '1970-01-01T00:00:01Z' },
      { key: 'c', effect: 'NoSchedule' },
    ];
    expect(stampedTaints(stored.slice(1), 8_000)).toBeUndefined();
    expect(stampedTaints(stored, 8_000)).toEqual([
      { key: 'a', effect: 'NoExecute', timeAdded: '1970-01-01T00:00:08Z' },
      ...stored.slice(1),
    ]);
  });
});

const silent: NodeSigns = { ready: 'Unknown', createdAtMs: 0, renewedAtMs: 40_000, statusAtMs: 10_000 };
const removal = (more: Partial<Parameters<typeof removalVerdict>[0]> = {}) =>
  removalVerdict({
    offlineStopMs: 700_000,
    taints: [aTaint(TAINT_UNREACHABLE)],
    signs: silent,
    freshSinceMs: 0,
    ...more,
  });

describe('the removal of a terminating pod that must not run twice', () => {
  it('is due when its machine has stopped it, by the last heartbeat that the cluster received', () => {
    expect(removal()).toMatchObject({
      kind: 'due',
      atMs: 740_000,
      reason: 'no heartbeat or status since 1970-01-01T00:00:40Z, and the machine has stopped the pod after 700 s',
    });
  });

  it.each([
    ['a later status post', { statusAtMs: 50_000 }, 750_000],
    ['no heartbeat and no status, but its creation', { renewedAtMs: undefined, statusAtMs: undefined }, 700_000],
  ])('counts from %s', (_, signs, atMs) => {
    expect(removal({ signs: { ...silent, ...signs } as NodeSigns })).toMatchObject({ kind: 'due', atMs });
  });

  it('counts anew after an outage of the controller, which may be a step of its clock', () => {
    expect(removal({ freshSinceMs: 90_000 })).toMatchObject({
      kind: 'due',
      atMs: 790_000,
      reason: expect.stringContaining('(counted from 1970-01-01T00:01:30Z, after a controller outage)'),
    });
    expect(removal({ freshSinceMs: 30_000 })).toMatchObject({ atMs: 740_000 });
  });

  it.each([
    ['is Ready again', { signs: { ...silent, ready: 'True' as const } }],
    ['reports that it is not ready', { signs: { ...silent, ready: 'False' as const } }],
    ['has no digest', { signs: undefined }],
    ['is not tainted yet', { taints: [] }],
    ['has another taint alone', { taints: [aTaint(TAINT_NOT_READY)] }],
  ])('is never due while its node %s', (_, more) => {
    expect(removal(more)).toMatchObject({ kind: 'none' });
  });
});
