import { describe, expect, it } from 'vitest';
import {
  decidePodEvictions as decide,
  type EvictablePod,
  type EvictionWorld,
  TAINT_EVICTION_CONDITION,
  withDisruption,
} from './eviction.rule.ts';

const pod: EvictablePod = {
  namespace: 'ns',
  name: 'p',
  uid: 'u1',
  nodeName: 'n',
  boundAtMs: 0,
  tolerations: [{ key: 'a', operator: 'Exists', tolerationSeconds: 10 }],
  terminating: false,
};
const world: EvictionWorld = {
  nodeName: 'n',
  taints: [{ key: 'a', value: '', addedAtMs: 0 }],
  pods: [pod],
  timers: [],
  gate: { kind: 'open' },
  freshSinceMs: 0,
};
const timer = { namespace: 'ns', name: 'p', podUid: 'u1', atMs: 10_000 };
const target = { namespace: 'ns', name: 'p', podUid: 'u1' };

const decidePodEvictions = (given: EvictionWorld, nowMs: number) =>
  decide(given, nowMs, { nodeMonitorGracePeriodSeconds: 40 });

describe('decidePodEvictions', () => {
  it('schedules, keeps, and deletes with event, condition and uid', () => {
    expect(decidePodEvictions(world, 0)).toEqual([
      { kind: 'schedule', ...target, reason: 'a is tolerated for 10 s', atMs: 10_000 },
    ]);
    expect(decidePodEvictions({ ...world, timers: [timer] }, 9_999)).toEqual([]);
    expect(decidePodEvictions({ ...world, timers: [timer] }, 10_000)).toMatchObject([
      {
        kind: 'delete',
        ...target,
        condition: { reason: 'DeletionByTaintManager', message: 'Taint manager: deleting due to NoExecute taint' },
        event: { reason: 'TaintManagerEviction', message: 'Marking for deletion Pod ns/p' },
      },
    ]);
  });

  it('leaves a pod to the hub of its site, at any time and while it terminates', () => {
    const ofSite = { ...pod, siteHub: 'hub' };
    const reason = 'a is tolerated for 10 s; left to hub, the hub of its site';
    for (const nowMs of [0, 10_000, 9_999_999]) {
      expect(decidePodEvictions({ ...world, pods: [ofSite] }, nowMs)).toEqual([
        { kind: 'leave', ...target, reason, atMs: 10_000 },
      ]);
      const terminating = { ...ofSite, terminating: true, offlineStopMs: 1_000 };
      expect(decidePodEvictions({ ...world, pods: [terminating] }, nowMs)).toEqual([]);
    }
    expect(decidePodEvictions({ ...world, taints: [], pods: [ofSite] }, 0)).toEqual([]);
  });

  it('moves a timer that no longer fits', () => {
    expect(decidePodEvictions({ ...world, timers: [{ ...timer, atMs: 99_000 }] }, 1_000)).toMatchObject([
      { kind: 'move', fromMs: 99_000, atMs: 10_000 },
    ]);
  });

  it('cancels with an event when the taint is removed, also while the safety gate is closed', () => {
    for (const gate of [{ kind: 'open' }, { kind: 'holding', reasons: ['failingPath'], sinceMs: 0 }] as const) {
      expect(decidePodEvictions({ ...world, gate, taints: [], timers: [timer] }, 5_000)).toMatchObject([
        { kind: 'cancel', event: { message: 'Cancelling deletion of Pod ns/p' } },
      ]);
    }
  });

  it('deletes nothing while the safety gate is closed, and states the reason', () => {
    const gate = { kind: 'holding', reasons: ['failingPath'], sinceMs: 0 } as const;
    expect(decidePodEvictions({ ...world, gate, timers: [timer] }, 50_000)).toEqual([
      {
        kind: 'hold',
        ...target,
        reason: 'a is tolerated for 10 s; held: failingPath',
        atMs: 10_000,
        timerExists: true,
      },
    ]);
    const bare = { ...pod, tolerations: [] };
    expect(decidePodEvictions({ ...world, gate, pods: [bare] }, 50_000)).toMatchObject([
      { kind: 'hold', atMs: 50_000, timerExists: false },
    ]);
  });

  it('keeps a held pod due now when its timer was set for a later time', () => {
    const gate = { kind: 'holding', reasons: ['failingPath'], sinceMs: 0 } as const;
    const later = { ...world, gate, timers: [{ ...timer, atMs: 99_000 }] };
    expect(decidePodEvictions(later, 50_000)).toMatchObject([{ kind: 'hold', atMs: 50_000, timerExists: false }]);
  });

  it('evicts no pod for our own taints within the new grace period after an outage', () => {
    const silent = { ...world, taints: [{ key: 'node.kubernetes.io/unreachable', value: '', addedAtMs: 0 }] };
    expect(decidePodEvictions({ ...silent, freshSinceMs: 50_000, timers: [timer] }, 50_000)).toMatchObject([
      { kind: 'move', fromMs: 10_000, atMs: 90_000 },
    ]);
  });

  it('evicts no pod for our own taints in total disruption, which removes them, and any for another taint', () => {
    const silent = { ...world, taints: [{ key: 'node.kubernetes.io/unreachable', value: '', addedAtMs: 0 }] };
    const inDisruption = { totalDisruption: true, timers: [timer] };
    expect(decidePodEvictions({ ...silent, ...inDisruption }, 50_000)).toMatchObject([
      { kind: 'move', fromMs: 10_000, atMs: 90_000, reason: expect.stringContaining('total disruption') },
    ]);
    const drained = {
      ...world,
      taints: [{ key: 'drained', value: '', addedAtMs: 0 }],
      pods: [{ ...pod, tolerations: [] }],
    };
    expect(decidePodEvictions({ ...drained, ...inDisruption }, 50_000)).toMatchObject([{ kind: 'delete' }]);
  });

  it('drops timers of a deleted node, of a deleted pod, of a terminating pod and of a pod on another node', () => {
    const reasonOf = (over: Partial<EvictionWorld>) =>
      decidePodEvictions({ ...world, timers: [timer], ...over }, 50_000).map(
        ({ kind, reason }) => `${kind}: ${reason}`,
      );
    expect(reasonOf({ taints: undefined })).toEqual(['drop: node is deleted']);
    expect(reasonOf({ pods: [] })).toEqual(['drop: pod no longer exists']);
    expect(reasonOf({ pods: [{ ...pod, terminating: true }] })).toEqual(['drop: pod is already terminating']);
    expect(reasonOf({ pods: [{ ...pod, nodeName: 'm' }] })).toEqual(['drop: pod is not on this node']);
  });
});

describe('a terminating pod that its machine stops without a link', () => {
  const unreachable = { key: 'node.kubernetes.io/unreachable', value: '', addedAtMs: 0 };
  const signs = { ready: 'Unknown', createdAtMs: 0, renewedAtMs: 5_000 } as const;
  const stopping = { ...pod, tolerations: [], terminating: true, offlineStopMs: 700_000 };
  const silent: EvictionWorld = { ...world, taints: [unreachable], pods: [stopping], signs };
  const removal = { ...timer, atMs: 705_000 };

  it('gets a timer for its removal, which moves with the signs of life of the node', () => {
    expect(decidePodEvictions(silent, 10_000)).toMatchObject([{ kind: 'schedule', ...target, atMs: 705_000 }]);
    expect(decidePodEvictions({ ...silent, timers: [removal] }, 704_999)).toEqual([]);
    // The timer of its eviction, which was due when it was deleted.
    expect(decidePodEvictions({ ...silent, timers: [timer] }, 10_000)).toMatchObject([
      { kind: 'move', fromMs: 10_000, atMs: 705_000 },
    ]);
    const later = { ...signs, renewedAtMs: 600_000 };
    expect(decidePodEvictions({ ...silent, signs: later, timers: [removal] }, 705_000)).toMatchObject([
      { kind: 'move', fromMs: 705_000, atMs: 1_300_000 },
    ]);
  });

  it('is removed with an event when the timer is due, and held while the safety gate is closed', () => {
    expect(decidePodEvictions({ ...silent, timers: [removal] }, 705_000)).toMatchObject([
      {
        kind: 'remove',
        ...target,
        event: {
          reason: 'TaintManagerEviction',
          message: 'Removing Pod ns/p: node n sends no heartbeats, and has stopped the pod by now',
        },
      },
    ]);
    const gate = { kind: 'holding', reasons: ['failingPath'], sinceMs: 0 } as const;
    expect(decidePodEvictions({ ...silent, gate, timers: [removal] }, 705_000)).toMatchObject([
      { kind: 'hold', ...target, atMs: 705_000, timerExists: true },
    ]);
  });

  it('keeps its place when the node is no longer silent: the timer is dropped, which is recorded', () => {
    const recovered = { ...silent, signs: { ...signs, ready: 'True' as const }, timers: [removal] };
    expect(decidePodEvictions(recovered, 800_000)).toEqual([
      { kind: 'drop', ...target, isRecorded: true, reason: 'pod is already terminating, and the node is not silent' },
    ]);
    expect(decidePodEvictions({ ...recovered, timers: [] }, 800_000)).toEqual([]);
  });

  it('is not removed without the time after which its machine stops it, whatever the silence', () => {
    const plain = { ...stopping, offlineStopMs: undefined };
    expect(decidePodEvictions({ ...silent, pods: [plain], timers: [removal] }, 9_000_000)).toMatchObject([
      { kind: 'drop', isRecorded: false, reason: 'pod is already terminating' },
    ]);
  });

  it('is evicted first, as every pod, and never while it tolerates the taint for ever', () => {
    const running = { ...pod, tolerations: [] };
    expect(decidePodEvictions({ ...silent, pods: [running] }, 10_000)).toMatchObject([{ kind: 'delete' }]);
    const forever = { ...pod, tolerations: [{ operator: 'Exists' as const }] };
    expect(decidePodEvictions({ ...silent, pods: [forever] }, 9_000_000)).toEqual([]);
  });
});

describe('withDisruption', () => {
  const ready = { type: 'Ready', status: 'True' };
  it('adds the condition beside the others', () => {
    expect(withDisruption([ready], TAINT_EVICTION_CONDITION, 61_000)).toEqual([
      ready,
      { ...TAINT_EVICTION_CONDITION, lastTransitionTime: '1970-01-01T00:01:01Z' },
    ]);
  });

  it('changes what differs, and the transition time only with the status', () => {
    const earlier = { ...TAINT_EVICTION_CONDITION, reason: 'Other', lastTransitionTime: 'T0' };
    expect(withDisruption([earlier], TAINT_EVICTION_CONDITION, 61_000)).toEqual([
      { ...TAINT_EVICTION_CONDITION, lastTransitionTime: 'T0' },
    ]);
    expect(withDisruption([{ ...earlier, status: 'False' }], TAINT_EVICTION_CONDITION, 61_000)).toEqual([
      { ...TAINT_EVICTION_CONDITION, lastTransitionTime: '1970-01-01T00:01:01Z' },
    ]);
  });

  it('writes nothing when it is there', () => {
    expect(withDisruption([{ ...TAINT_EVICTION_CONDITION }], TAINT_EVICTION_CONDITION, 0)).toBeUndefined();
  });
});
