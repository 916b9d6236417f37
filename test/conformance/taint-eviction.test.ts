/** Area TE: taint eviction. Area TW (its timers) is in eviction-timers.test.ts. */
import { describe, expect, it } from 'vitest';
import { evictionVerdict } from '../../shared/fleet/eviction-time.rule.ts';
import { addNoExecute, swapNoExecute } from '../../shared/fleet/nodes/node-taints.ts';
import { noExecuteTaints } from '../../shared/fleet/nodes/taint.ts';
import type { Toleration } from '../../shared/kubernetes/kubernetes.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import { settledFleet } from '../support/controlled-fleet.ts';
import { DAEMON_SET_TOLERATIONS } from '../support/daemon-set.ts';
import { aPod, aTaint, EvictionWorld, tolerating } from '../support/eviction-world.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';

const tainted = (...taints: ReturnType<typeof aTaint>[]): EvictionWorld => {
  const world = new EvictionWorld();
  world.taints = taints;
  return world;
};
const testTaint1 = aTaint('testTaint1', 0, 'test1');
const equalTest1: Toleration = { key: 'testTaint1', operator: 'Equal', value: 'test1' };

describe('taint eviction', () => {
  it('TE-02 leaves a pod that is not bound', () => {
    const world = tainted(testTaint1);
    world.pods = [aPod('p', [], { nodeName: undefined, boundAtMs: undefined })];
    expect(world.handle()).toEqual([]);
  });

  it('TE-04 sets the condition of a pod without toleration and deletes it at once', () => {
    const world = tainted(testTaint1);
    world.pods = [aPod('p', [])];
    expect(world.handle()).toMatchObject([
      {
        kind: 'delete',
        condition: {
          type: 'DisruptionTarget',
          status: 'True',
          reason: 'DeletionByTaintManager',
          message: 'Taint manager: deleting due to NoExecute taint',
        },
      },
    ]);
    expect(world.deletedAtMs.get('p')).toBe(0);
  });

  it('TE-06 never deletes a pod that tolerates the taint without seconds', () => {
    const world = tainted(testTaint1);
    world.pods = [aPod('p', [equalTest1])];
    world.runTo(3_600, 60_000);
    expect(world.log).toEqual([]);
  });

  it('TE-08 accepts the deletion of a pod by another client without error', () => {
    const world = tainted(testTaint1);
    world.pods = [aPod('p', [{ ...equalTest1, tolerationSeconds: 100 }])];
    world.handle();
    expect(world.at(5, (w) => (w.pods = []))).toMatchObject([{ kind: 'drop', reason: 'pod no longer exists' }]);
    expect(world.timers.size).toBe(0);
  });

  it('TE-10 leaves a pod that tolerates for ever when it gets bound', () => {
    const world = tainted(testTaint1);
    world.pods = [aPod('p', [equalTest1], { nodeName: undefined, boundAtMs: undefined })];
    world.handle();
    world.at(3, (w) => w.replacePod('p', { nodeName: 'node1', boundAtMs: 3_000 }));
    world.runTo(100);
    expect(world.log).toEqual([]);
  });

  it('TE-12 (ours, D6) lengthening a toleration moves the eviction from 1 s to 100 s', () => {
    const world = tainted(testTaint1);
    world.pods = [aPod('p', [{ ...equalTest1, tolerationSeconds: 1 }])];
    world.handle();
    expect(world.dueInSeconds('p')).toBe(1);
    world.at(0.5, (w) => w.replacePod('p', { tolerations: [{ ...equalTest1, tolerationSeconds: 100 }] }), 100);
    expect(world.dueInSeconds('p')).toBe(99.5);
    world.runTo(200, 500);
    expect(world.deletedAtMs.get('p')).toBe(100_000);
  });

  it('TE-14 deletes the pod of a node that appears with a NoExecute taint', () => {
    const world = new EvictionWorld();
    world.taints = undefined;
    world.pods = [aPod('pod1', [])];
    expect(world.handle()).toEqual([]);
    expect(world.at(1, (w) => (w.taints = [aTaint('testTaint1', 1)]))).toMatchObject([
      { kind: 'delete', condition: { type: 'DisruptionTarget' } },
    ]);
  });

  it('TE-16 knows nothing of a node once it is deleted', () => {
    const world = tainted(testTaint1);
    world.pods = [aPod('p', [{ ...equalTest1, tolerationSeconds: 100 }])];
    world.handle();
    world.at(1, (w) => (w.taints = undefined));
    expect(world.timers.size).toBe(0);
    expect(world.decide()).toEqual([]);
  });

  it('TE-18 does not delete a pod that tolerates the new taint for 100 s', () => {
    const world = new EvictionWorld();
    world.pods = [aPod('pod1', [tolerating('t1', 100)])];
    world.handle();
    world.at(1, (w) => (w.taints = [aTaint('t1', 1)]));
    expect(world.deletedAtMs.size).toBe(0);
    expect(world.dueInSeconds('pod1')).toBe(100);
  });

  it('TE-20 does not delete a pod if the taint is removed before the second is over', () => {
    const world = tainted(aTaint('t1'));
    world.pods = [aPod('pod1', [tolerating('t1', 1)])];
    world.handle();
    world.at(0.5, (w) => (w.taints = []), 100);
    world.runTo(1.5, 100);
    expect(world.deletedAtMs.size).toBe(0);
    expect(world.events).toEqual(['Cancelling deletion of Pod default/pod1']);
  });

  it('TE-22 schedules nothing on an untainted node', () => {
    const world = new EvictionWorld();
    world.pods = [aPod('pod1', [tolerating('t1'), tolerating('t2', 60)])];
    expect(world.handle()).toEqual([]);
  });

  it('TE-24 schedules when a second taint is tolerated for 60 s only', () => {
    const world = new EvictionWorld();
    world.pods = [aPod('pod1', [tolerating('t1'), tolerating('t2', 60)])];
    expect(world.at(1, (w) => (w.taints = [aTaint('t1', 1)]))).toEqual([]);
    world.at(2, (w) => w.taints?.push(aTaint('t2', 2)));
    expect(world.dueInSeconds('pod1')).toBe(60);
  });

  it('TE-26 deletes at 0 s, at 1 s and never, by each pod’s toleration', () => {
    const world = tainted(aTaint('t1'));
    world.pods = [aPod('pod1', []), aPod('pod2', [tolerating('t1', 1)]), aPod('pod3', [tolerating('t1')])];
    world.handle();
    world.runTo(100);
    expect([...world.deletedAtMs]).toEqual([
      ['pod1', 0],
      ['pod2', 1_000],
    ]);
  });

  it('TE-28 the minimum time of no tolerations is 0', () => {
    expect(evictionVerdict({ taints: [aTaint('a')], tolerations: [], boundAtMs: 0, nowMs: 0 })).toMatchObject({
      atMs: 0,
    });
  });

  it('TE-30 the minimum of 1 s and 2 s is 1 s', () => {
    const tolerations = [tolerating('a', 1), tolerating('b', 2)];
    expect(evictionVerdict({ taints: [aTaint('a'), aTaint('b')], tolerations, boundAtMs: 0, nowMs: 0 })).toMatchObject({
      atMs: 1_000,
    });
  });

  it('TE-32 the minimum of for ever and 1 s is 1 s', () => {
    const tolerations = [tolerating('a'), tolerating('b', 1)];
    expect(evictionVerdict({ taints: [aTaint('a'), aTaint('b')], tolerations, boundAtMs: 0, nowMs: 0 })).toMatchObject({
      atMs: 1_000,
    });
  });

  it('TE-34 any pod seen bound only after the node was handled is scheduled by its own event', () => {
    const world = tainted(aTaint('t1'));
    const pod2 = aPod('pod2', [tolerating('t1', 100)], { nodeName: undefined, boundAtMs: undefined });
    world.pods = [aPod('pod1', []), pod2];
    world.handle();
    world.replacePod('pod2', { nodeName: 'node1', boundAtMs: 0 });
    world.handle();
    expect(world.deletedAtMs.get('pod1')).toBe(0);
    expect(world.dueInSeconds('pod2')).toBe(100);
  });

  it('TE-36 any pod created after the node was handled is scheduled by its own event', () => {
    const world = tainted(aTaint('t1'));
    world.pods = [aPod('pod1', [])];
    world.handle();
    world.pods.push(aPod('pod2', [tolerating('t1', 100)]));
    world.handle();
    expect(world.deletedAtMs.get('pod1')).toBe(0);
    expect(world.dueInSeconds('pod2')).toBe(100);
  });

  it('TE-38 a cancelled eviction emits one Normal event', () => {
    const world = tainted(aTaint('t1'));
    world.pods = [aPod('test', [tolerating('t1', 60)], { namespace: 'test' })];
    world.handle();
    expect(world.at(1, (w) => (w.taints = []))).toMatchObject([
      {
        kind: 'cancel',
        event: { type: 'Normal', reason: 'TaintManagerEviction', message: 'Cancelling deletion of Pod test/test' },
      },
    ]);
    world.runTo(10);
    expect(world.events).toHaveLength(1);
  });

  it('TE-40 (ours, D6) a swap to a taint tolerated for 10 s only deletes at the swap, 100 s into the silence', () => {
    const world = new EvictionWorld();
    const notReady = addNoExecute([], 'notReady', 0) ?? [];
    world.taints = noExecuteTaints(notReady);
    world.pods = [aPod('p', [tolerating(NOT_READY, 300), tolerating(UNREACHABLE, 10)])];
    world.handle();
    expect(world.dueInSeconds('p')).toBe(300);
    world.at(100, (w) => (w.taints = noExecuteTaints(swapNoExecute(notReady, 'unreachable', w.nowMs) ?? [])));
    expect(world.deletedAtMs.get('p')).toBe(100_000);
  });

  it('TE-42 uses the first matching toleration: 5 s, though the second is for ever', () => {
    const world = tainted(aTaint(NOT_READY));
    world.pods = [aPod('p', [{ key: NOT_READY, operator: 'Exists', tolerationSeconds: 5 }, { operator: 'Exists' }])];
    world.handle();
    world.runTo(20);
    expect(world.deletedAtMs.get('p')).toBe(5_000);
  });

  it('TE-44 (ours, D7) the timers of a deleted node are dropped', () => {
    const world = tainted(aTaint('t1'));
    world.pods = [aPod('p', [tolerating('t1', 300)])];
    world.handle();
    expect(world.at(50, (w) => (w.taints = undefined))).toMatchObject([{ kind: 'drop', reason: 'node is deleted' }]);
    world.runTo(400);
    expect(world.deletedAtMs.size).toBe(0);
  });

  it('TE-46 a DaemonSet pod stays on an unreachable node', () => {
    const world = tainted(aTaint(UNREACHABLE));
    world.pods = [aPod('daemon', DAEMON_SET_TOLERATIONS)];
    world.handle();
    world.runTo(3_600, 60_000);
    expect(world.log).toEqual([]);
  });

  it('TE-48 (ours, L7) a deletion that fails is tried again at every tick, under one marking event', async () => {
    const refuses = { pods: false };
    const { fleet } = await settledFleet(
      { a: 1, b: 1 },
      {
        policy: { tickGate: 'off', ingestGate: 'off' },
        between: (items) => ({
          ...items,
          async transact(writes) {
            if (refuses.pods && writes.some(({ kind, key }) => kind !== 'check' && key.pk.startsWith('o#pods#'))) {
              throw new StoreFault('timeout', 'no answer in time', { retryable: true });
            }
            return items.transact(writes);
          },
        }),
      },
    );
    await fleet.addPod('p', 'a-0', { tolerations: [tolerating('t1', 5)] });
    await fleet.changeNode('a-0', (node) => ({
      ...node,
      spec: { ...node.spec, taints: [{ key: 't1', effect: 'NoExecute', timeAdded: formatTime(fleet.nowMs()) }] },
    }));
    await fleet.streams();
    refuses.pods = true;
    for (let seconds = 5; seconds <= 60; seconds += 5) {
      fleet.at(seconds);
      await expect(fleet.controllers.tickEvictor(fleet.slot())).rejects.toThrow('evictor could not finish its tick');
      expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeUndefined();
    }
    refuses.pods = false;
    fleet.at(65);
    await fleet.controllers.tickEvictor(fleet.slot());
    await fleet.streams();
    expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeDefined();
    expect(await fleet.events('TaintManagerEviction')).toMatchObject([
      { message: 'Marking for deletion Pod default/p', count: 1 },
    ]);
  });

  it('TE-50 NoSchedule taints and labels change nothing', () => {
    const world = new EvictionWorld();
    world.pods = [aPod('p', [])];
    world.taints = noExecuteTaints([
      { key: 't1', effect: 'NoSchedule' },
      { key: 't2', effect: 'PreferNoSchedule' },
    ]);
    expect(world.handle()).toEqual([]);
  });
});
