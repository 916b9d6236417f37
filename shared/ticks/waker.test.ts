import { describe, expect, it } from 'vitest';
import { settledFleet } from '../../test/support/controlled-fleet.ts';
import { type ItemStore, StoreFault } from '../store/item-store.ts';
import { parkedStore } from './parked-store.ts';

/** A fleet with a node-monitor that wakes the others. */
async function waking({ between, nodes = 3 }: { between?: (items: ItemStore) => ItemStore; nodes?: number } = {}) {
  const names: string[] = [];
  const times: number[] = [];
  let fails = false;
  const { fleet, names: nodeNames } = await settledFleet(
    { a: nodes },
    {
      ...(between === undefined ? {} : { between }),
      waker: {
        async wake(wanted, atMs) {
          names.push(...wanted);
          times.push(atMs);
          return fails ? wanted.map((name) => ({ name, reason: 'no' })) : [];
        },
      },
    },
  );
  return {
    fleet,
    nodeNames,
    times,
    fail: () => {
      fails = true;
    },
    /** Four quiet ticks; pod-gc has made its first sweep. */
    async settle() {
      fleet.at(0);
      await fleet.controllers.tickPodGc(fleet.slot());
      await fleet.run(0, 15, () => fleet.beat(...nodeNames));
      names.splice(0);
      times.splice(0);
    },
    async tick(seconds: number) {
      fleet.at(seconds);
      await fleet.controllers.tickNodeMonitor(fleet.slot());
      return names.splice(0);
    },
  };
}

describe('a tick of node-monitor', () => {
  it('wakes no function at rest, for four queries of half a unit, and one more per period of pod-gc', async () => {
    const { fleet, nodeNames, settle, tick } = await waking();
    await settle();
    const unitsOf = async (seconds: number) => {
      await fleet.beat(...nodeNames);
      fleet.consumed();
      expect(await tick(seconds)).toEqual([]);
      return fleet
        .consumed()
        .requests.filter(({ operation }) => operation === 'Query')
        .map(({ readUnits }) => readUnits);
    };
    // The first is that of its own records, the second that of reports of silent machines.
    expect(await unitsOf(20)).toEqual([1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
    expect(await unitsOf(25)).toEqual([1, 0.5, 0.5, 0.5, 0.5, 0.5]);
  });

  it('wakes evictor at once for nodes that it queues, and in each tick while they wait', async () => {
    const { fleet, tick } = await waking();
    await fleet.run(0, 35, (seconds) => (seconds % 10 === 0 ? fleet.beat('a-0') : Promise.resolve()));
    await tick(40);
    expect(await tick(45)).toContain('evictor');
    expect(await tick(50)).toContain('evictor');
  });

  it('wakes evictor when a timer is due, and when the retry of a parked record is', async () => {
    const { fleet, settle, tick } = await waking();
    await settle();
    expect(await tick(20)).toEqual([]);
    await parkedStore(fleet.tables).park(
      { resource: 'nodes', namespace: '', name: 'a-0', uid: 'u', resourceVersion: 1, text: '{}' },
      ['timers'],
      fleet.nowMs() + 10_000,
    );
    expect(await tick(25)).toEqual([]);
    expect(await tick(30)).toEqual(['evictor']);
  });

  it('wakes cloud-node while its list has a node', async () => {
    const { fleet, settle, tick } = await waking();
    await settle();
    await fleet.tables.write({ kind: 'put', key: { table: 'control', pk: 'cloud', sk: 'a-0' }, item: {} });
    expect(await tick(20)).toEqual(['cloud-node']);
    expect(await tick(25)).toEqual(['cloud-node']);
  });

  it('wakes pod-gc once per period of its own, while its list has work', async () => {
    const { fleet, settle, tick } = await waking();
    await settle();
    const pod = { namespace: 'default', name: 'p', uid: 'u', nodeName: undefined, phase: 'Running' };
    const store = (terminating: boolean) =>
      fleet.tables.write({
        kind: 'put',
        key: { table: 'control', pk: 'pod-gc', sk: `pod#${pod.namespace}/${pod.name}` },
        item: { u: pod.uid, c: 0, p: terminating ? 'Running' : 'Succeeded', ...(terminating ? { t: 1 } : {}) },
      });
    await store(false);
    expect(await tick(20)).toEqual([]);
    await store(true);
    expect(await tick(25)).toEqual([]);
    expect(await tick(40)).toEqual(['pod-gc']);
    expect(await tick(45)).toEqual([]);
  });

  it('passes the start of its slot on: each of its ticks is one of theirs', async () => {
    const { fleet, settle, times, tick } = await waking();
    await settle();
    await fleet.tables.write({ kind: 'put', key: { table: 'control', pk: 'cloud', sk: 'a-0' }, item: {} });
    await tick(22.3);
    await tick(29.9);
    expect(times.map((atMs) => (atMs / 1_000) % 60)).toEqual([20, 25]);
  });

  it('wakes a function when the check of its work fails, and finishes when a wake-up fails', async () => {
    const { fleet, settle, fail, tick } = await waking({
      between: (items) => ({
        ...items,
        query: (request) =>
          request.pk === 'cloud'
            ? Promise.reject(new StoreFault('throttled', 'down', { retryable: true }))
            : items.query(request),
      }),
    });
    await settle();
    fail();
    expect(await tick(20)).toEqual(['cloud-node']);
    expect((await fleet.records()).state.gate.lastTickAtMs).toBe(fleet.nowMs());
  });
});
