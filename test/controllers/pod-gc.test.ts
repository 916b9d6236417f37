/** Pods that no kubelet will finish, from a change in the tables to their deletion. */
import { describe, expect, it } from 'vitest';
import { podGcStore } from '../../shared/kinds/pods/work-list-store.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { Taint } from '../../shared/kubernetes/kubernetes.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import { objectOf } from '../../shared/store/object-record.ts';
import { type ControlledFleet, controlledFleet, type FleetOptions, settledFleet } from '../support/controlled-fleet.ts';
import { dyingStore } from '../support/failing-store.ts';

const OUT_OF_SERVICE: Taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };

/** Nodes a-0 and a-1 with one pod each, p-0 and p-1. */
async function fleetOfTwo(options: FleetOptions = {}): Promise<ControlledFleet> {
  const { fleet } = await settledFleet({ a: 2 }, options);
  await fleet.addPod('p-0', 'a-0');
  await fleet.addPod('p-1', 'a-1');
  await fleet.streams();
  // The first tick sweeps; these tests do not count its calls.
  fleet.at(0);
  await fleet.collect();
  return fleet;
}

const listOf = (fleet: ControlledFleet) => podGcStore(fleet.tables).read();
const removals = (fleet: ControlledFleet) =>
  fleet.metrics.filter(({ name }) => name === 'pod_gc_collector_force_delete_pods_total').length;
const outOfService = (fleet: ControlledFleet, name: string) =>
  fleet.changeNode(name, (node) => ({
    ...node,
    spec: { ...node.spec, taints: [...(node.spec?.taints ?? []), OUT_OF_SERVICE] },
  }));

/** Every stored state of a pod after its first: phase, conditions and whether it exists. */
const historyOf = (fleet: ControlledFleet, name: string) =>
  fleet.tables
    .changes('objects')
    .filter(({ key }) => key.pk.startsWith('o#pods#') && key.sk === `default/${name}`)
    .slice(1)
    .map(({ newImage }) => {
      if (newImage === undefined) return 'gone';
      const { status } = objectOf(newImage) as KubePod;
      const condition = status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
      return `${status?.phase} ${condition === undefined ? '' : `${condition.reason}: ${condition.message}`}`.trim();
    });

describe('orphaned pods', () => {
  it('GC-24 are deleted in the first tick from 40 s on, marked Failed with the reason first, without grace period', async () => {
    const fleet = await fleetOfTwo();
    fleet.at(1);
    await fleet.removeNode('a-0');
    await fleet.streams();
    for (const seconds of [20, 40]) {
      fleet.at(seconds);
      expect(await fleet.collect()).toMatchObject({ kind: 'ran', podsRemoved: 0 });
    }
    fleet.at(60);
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 1 });
    expect(await fleet.pod('p-0')).toBeUndefined();
    expect(await fleet.pod('p-1')).toBeDefined();
    expect(historyOf(fleet, 'p-0')).toEqual(['Failed DeletionByPodGC: PodGC: node no longer exists', 'gone']);
    fleet.at(80);
    await fleet.collect();
    expect(await listOf(fleet)).toMatchObject({ pods: [], missing: new Map(), volumes: [] });
  });

  it('GC-10 that have terminated are deleted without a mark', async () => {
    const fleet = await fleetOfTwo();
    await fleet.changePod('p-0', (pod) => ({ ...pod, status: { ...pod.status, phase: 'Succeeded' } }));
    await fleet.removeNode('a-0');
    await fleet.streams();
    fleet.at(40);
    await fleet.collect();
    expect(historyOf(fleet, 'p-0')).toEqual(['Succeeded', 'gone']);
  });

  it('stay when the Node is created again within the quarantine, which restarts with the next deletion', async () => {
    const fleet = await fleetOfTwo();
    await fleet.removeNode('a-0');
    await fleet.streams();
    fleet.at(30);
    await fleet.register('a-0');
    await fleet.streams();
    expect((await listOf(fleet)).missing.size).toBe(0);
    fleet.at(60);
    await fleet.removeNode('a-0');
    await fleet.streams();
    fleet.at(80);
    await fleet.collect();
    expect(await fleet.pod('p-0')).toBeDefined();
    fleet.at(100);
    await fleet.collect();
    expect(await fleet.pod('p-0')).toBeUndefined();
  });

  it('stay when the Node is created again between the live read and the delete', async () => {
    let fleet: ControlledFleet | undefined;
    let armed = false;
    fleet = await fleetOfTwo({
      between: (items) => ({
        ...items,
        async transact(writes) {
          if (armed && writes.some((write) => write.kind === 'check')) {
            armed = false;
            await fleet!.register('a-0');
          }
          return items.transact(writes);
        },
      }),
    });
    await fleet.removeNode('a-0');
    await fleet.streams();
    fleet.at(40);
    armed = true;
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 0 });
    expect(armed).toBe(false);
    expect(historyOf(fleet, 'p-0')).toEqual([]);
  });

  it('wait again after a live read that failed', async () => {
    let broken = false;
    const fleet = await fleetOfTwo({
      between: (items) => ({
        ...items,
        async get(key, options) {
          if (broken && key.pk.startsWith('o#nodes#')) {
            throw new StoreFault('unreachable', 'no answer', { retryable: true });
          }
          return items.get(key, options);
        },
      }),
    });
    await fleet.removeNode('a-0');
    await fleet.streams();
    fleet.at(40);
    broken = true;
    await expect(fleet.collect()).rejects.toThrow('pod-gc could not finish');
    broken = false;
    fleet.at(60);
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 0 });
    fleet.at(80);
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 1 });
  });

  it('are found when they are bound to a node that never existed', async () => {
    const fleet = await fleetOfTwo();
    await fleet.addPod('stray', 'nowhere');
    await fleet.streams();
    fleet.at(40);
    await fleet.collect();
    expect(await fleet.pod('stray')).toBeUndefined();
  });

  it('GC-26 are not deleted in the tick in which marking them failed', async () => {
    let broken = false;
    const fleet = await fleetOfTwo({
      between: (items) => ({
        ...items,
        async transact(writes) {
          if (broken) throw new StoreFault('throttled', 'too much', { retryable: true });
          return items.transact(writes);
        },
      }),
    });
    await fleet.removeNode('a-0');
    await fleet.streams();
    fleet.at(40);
    broken = true;
    await expect(fleet.collect()).rejects.toThrow('pod-gc could not finish');
    expect(historyOf(fleet, 'p-0')).toEqual([]);
    expect(fleet.metrics.map(({ name }) => name)).toContain('pod_gc_collector_force_delete_pod_errors_total');
    broken = false;
    fleet.at(60);
    await fleet.collect();
    expect(await fleet.pod('p-0')).toBeUndefined();
  });

  it('with finalizers are marked for deletion once, and deleted with the last finalizer', async () => {
    const fleet = await fleetOfTwo();
    await fleet.changePod('p-0', (pod) => ({ ...pod, metadata: { ...pod.metadata, finalizers: ['example.org/x'] } }));
    await fleet.removeNode('a-0');
    await fleet.streams();
    for (const seconds of [40, 60, 80]) {
      fleet.at(seconds);
      await fleet.collect();
    }
    expect((await fleet.pod('p-0'))?.metadata).toMatchObject({ deletionGracePeriodSeconds: 0 });
    expect(historyOf(fleet, 'p-0')).toHaveLength(3);
    expect(removals(fleet)).toBe(0);
  });
});

describe('terminating pods', () => {
  it('GC-22 are deleted from an out-of-service node that is not Ready, and stay on one that is only unreachable', async () => {
    const fleet = await fleetOfTwo();
    for (const name of ['a-0', 'a-1']) await fleet.post(name, 'False');
    await outOfService(fleet, 'a-0');
    await fleet.addPod('staying', 'a-0');
    await fleet.endPod('p-0');
    await fleet.endPod('p-1');
    await fleet.streams();
    fleet.at(20);
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 1 });
    expect(historyOf(fleet, 'p-0').at(-1)).toBe('gone');
    expect(await fleet.pod('p-1')).toBeDefined();
    // Not terminating: taint eviction handles it, if it does not tolerate the taint.
    expect(historyOf(fleet, 'staying').at(-1)).not.toBe('Failed');
  });

  it('stay on a Ready node, out of service or not, until an out-of-service node is not Ready', async () => {
    const fleet = await fleetOfTwo();
    await outOfService(fleet, 'a-0');
    await fleet.endPod('p-0');
    await fleet.endPod('p-1');
    await fleet.streams();
    // Both are on the work list: otherwise they would stay for another reason.
    expect((await listOf(fleet)).pods.map(({ name }) => name).toSorted()).toEqual(['p-0', 'p-1']);
    fleet.at(20);
    expect(await fleet.collect()).toMatchObject({ kind: 'ran', podsRemoved: 0 });
    expect(await fleet.ready('a-0')).toBe('True');
    for (const name of ['p-0', 'p-1']) expect([name, historyOf(fleet, name).includes('gone')]).toEqual([name, false]);
    for (const name of ['a-0', 'a-1']) await fleet.post(name, 'False');
    await fleet.streams();
    fleet.at(40);
    expect(await fleet.collect()).toMatchObject({ kind: 'ran', podsRemoved: 1 });
    expect(await fleet.pod('p-0')).toBeUndefined();
    expect(await fleet.pod('p-1')).toBeDefined();
  });

  it('stay when the taint is removed at the moment of the delete', async () => {
    let fleet: ControlledFleet | undefined;
    let armed = false;
    fleet = await fleetOfTwo({
      between: (items) => ({
        ...items,
        async transact(writes) {
          if (armed && writes.some((write) => write.kind === 'check')) {
            armed = false;
            await fleet!.changeNode('a-0', (node) => ({ ...node, spec: {} }));
          }
          return items.transact(writes);
        },
      }),
    });
    await fleet.post('a-0', 'False');
    await outOfService(fleet, 'a-0');
    await fleet.endPod('p-0');
    await fleet.streams();
    fleet.at(20);
    armed = true;
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 0 });
    expect((await fleet.pod('p-0'))?.status?.['phase']).toBe('Running');
  });

  it('that were never bound are deleted at once', async () => {
    const fleet = await fleetOfTwo();
    await fleet.addPod('unbound', '', { phase: 'Pending' });
    await fleet.addPod('waiting', '', { phase: 'Pending' });
    await fleet.endPod('unbound');
    await fleet.streams();
    fleet.at(20);
    await fleet.collect();
    expect(historyOf(fleet, 'unbound').slice(1)).toEqual(['Failed', 'gone']);
    expect(await fleet.pod('waiting')).toBeDefined();
  });
});

describe('terminated pods', () => {
  it('GC-28 beyond the threshold are deleted: evicted ones first, then the oldest', async () => {
    const fleet = await fleetOfTwo({ policy: { terminatedPodGcThreshold: 2 } });
    for (const [name, reason] of [['t1'], ['e1', 'Evicted'], ['e2', 'Evicted'], ['t2']] as const) {
      fleet.at(fleet.seconds() + 1);
      await fleet.addPod(name, 'a-0', { phase: 'Failed', ...(reason === undefined ? {} : { reason }) });
    }
    await fleet.streams();
    fleet.at(20);
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 2 });
    const left = await Promise.all(['t1', 'e1', 'e2', 't2'].map((name) => fleet.pod(name)));
    expect(left.map((pod) => pod?.metadata.name)).toEqual(['t1', undefined, undefined, 't2']);
  });

  it('that are deleted already do not count, whatever the list says', async () => {
    const fleet = await fleetOfTwo({ policy: { terminatedPodGcThreshold: 1 } });
    await fleet.addPod('t1', 'a-0', { phase: 'Succeeded' });
    await fleet.streams();
    const store = podGcStore(fleet.tables);
    const [row] = (await listOf(fleet)).pods;
    await store.putPod({ ...row!, name: 'ghost', uid: 'ghost', createdAtMs: 0 });
    fleet.at(20);
    await fleet.collect();
    expect(await fleet.pod('t1')).toBeDefined();
    expect((await listOf(fleet)).pods.map(({ name }) => name)).toEqual(['t1']);
  });
});

describe('the work list', () => {
  const requestsOf = (fleet: ControlledFleet) =>
    fleet.consumed().requests.map(({ operation, readUnits, writeUnits }) => [operation, readUnits, writeUnits]);

  it('costs an idle tick one query and no claim, with or without terminated pods that may stay', async () => {
    const fleet = await fleetOfTwo();
    fleet.at(20);
    fleet.consumed();
    expect(await fleet.collect()).toMatchObject({ kind: 'ran' });
    expect(requestsOf(fleet)).toEqual([['Query', 1, 0]]);
    await fleet.changePod('p-1', (pod) => ({ ...pod, status: { ...pod.status, phase: 'Succeeded' } }));
    await fleet.streams();
    expect((await listOf(fleet)).pods).toHaveLength(1);
    fleet.at(40);
    fleet.consumed();
    expect(await fleet.collect()).toMatchObject({ kind: 'ran' });
    expect(requestsOf(fleet)).toEqual([['Query', 1, 0]]);
  });

  it.each([
    ['a pod is terminating', (fleet: ControlledFleet) => fleet.endPod('p-0')],
    ['a Node is missing', (fleet: ControlledFleet) => fleet.removeNode('a-0')],
    ['the sweep is due', async (fleet: ControlledFleet) => fleet.at(1_000)],
  ])('has its slot claimed where %s', async (_, happens) => {
    const fleet = await fleetOfTwo();
    fleet.at(20);
    await happens(fleet);
    await fleet.streams();
    fleet.consumed();
    await fleet.collect();
    expect(requestsOf(fleet).slice(0, 2)).toEqual([
      ['Query', 1, 0],
      ['UpdateItem', 0, 1],
    ]);
  });

  it('follows the current pods, however often and late their records arrive', async () => {
    const fleet = await fleetOfTwo();
    await fleet.endPod('p-0');
    await fleet.streams();
    expect((await listOf(fleet)).pods).toMatchObject([{ name: 'p-0', nodeName: 'a-0', terminating: true }]);
    await fleet.removePod('p-0');
    await fleet.streams();
    await fleet.controllers.onObjectRecords(fleet.tables.changes('objects'));
    expect((await listOf(fleet)).pods).toEqual([]);
  });

  it('is repaired by the sweep when records of the stream were lost', async () => {
    const fleet = await fleetOfTwo();
    const store = podGcStore(fleet.tables);
    await fleet.endPod('p-1');
    await fleet.post('a-1', 'False');
    await outOfService(fleet, 'a-1');
    await fleet.removeNode('a-0');
    await fleet.streams();
    // The list is as if no record of these had arrived, and one that never existed.
    const [row] = (await listOf(fleet)).pods;
    await store.putPod({ ...row!, name: 'ghost', phase: 'Failed', terminating: false });
    await store.dropPod(row!);
    await store.dropMissing('a-0', (await listOf(fleet)).missing.get('a-0')!);
    fleet.at(880);
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 0 });
    expect((await listOf(fleet)).pods).toHaveLength(1);
    fleet.at(900);
    await fleet.collect();
    expect(await listOf(fleet)).toMatchObject({
      pods: [{ name: 'p-1' }],
      missing: new Map([['a-0', fleet.nowMs()]]),
    });
    fleet.at(940);
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 2 });
  });
});

describe('pod-gc', () => {
  it('has the effects of one tick when two run at once, and a claimed slot is refused', async () => {
    const fleet = await fleetOfTwo();
    for (let index = 0; index < 10; index += 1) await fleet.addPod(`more-${index}`, 'a-0');
    await fleet.removeNode('a-0');
    await fleet.streams();
    fleet.at(40);
    const slot = 2 + Math.floor((fleet.nowMs() - 40_000) / 20_000);
    const reports = await Promise.all([
      fleet.controllers.tickPodGc(slot),
      fleet.makeControllers(fleet.tables).tickPodGc(slot),
      fleet.makeControllers(fleet.tables).tickPodGc(slot + 1),
    ]);
    await fleet.streams();
    expect(reports.some(({ kind }) => kind === 'lost')).toBe(true);
    expect(removals(fleet)).toBe(11);
    expect(historyOf(fleet, 'more-3')).toEqual(['Failed DeletionByPodGC: PodGC: node no longer exists', 'gone']);
    expect(await fleet.pod('p-1')).toBeDefined();
  });

  it.each([false, true])(
    'is healed by the next pass wherever it was killed (last call done: %s)',
    async (lastHappens) => {
      for (let atCall = 1; ; atCall += 1) {
        const fleet = await fleetOfTwo();
        await fleet.addPod('also', 'a-0');
        await fleet.removeNode('a-0');
        await fleet.addPod('unbound', '');
        await fleet.endPod('unbound');
        await fleet.streams();
        fleet.at(40);
        const dying = dyingStore(fleet.tables, atCall, lastHappens);
        await fleet.collect(fleet.makeControllers(dying.items)).catch(() => 'dead');
        const survived = dying.calls() < atCall;
        await fleet.streams();
        for (const seconds of [60, 80]) {
          fleet.at(seconds);
          await fleet.collect();
        }
        for (const name of ['p-0', 'also', 'unbound'])
          expect(await fleet.pod(name), `${name} ${atCall}`).toBeUndefined();
        expect(await fleet.pod('p-1')).toBeDefined();
        expect(await listOf(fleet)).toMatchObject({ pods: [], missing: new Map() });
        if (survived) {
          expect(atCall).toBeGreaterThan(10);
          break;
        }
      }
    },
  );

  it('is continued in the next tick after its time was over', async () => {
    const fleet = controlledFleet();
    await fleet.register('a-0');
    for (let index = 0; index < 5; index += 1) await fleet.addPod(`p-${index}`, 'a-0');
    await fleet.removeNode('a-0');
    await fleet.streams();
    fleet.at(40);
    const slot = Math.floor(fleet.nowMs() / 20_000);
    expect(await fleet.controllers.tickPodGc(slot, 0)).toMatchObject({ podsRemoved: 0, podsLeft: 5 });
    fleet.at(60);
    expect(await fleet.collect()).toMatchObject({ podsRemoved: 5, podsLeft: 0 });
  });
});
