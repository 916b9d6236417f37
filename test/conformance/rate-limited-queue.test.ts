/**
 * RQ: rate-limited timed queue. Upstream's queue is an object with a function to call; ours is stored: node-monitor
 * adds and removes nodes, evictor adds the taints. "Seen" in upstream's cases is here a queued or tainted node, "the
 * function is called" is a taint, and "it asks for a retry" is a taint that cannot be written.
 */
import { describe, expect, it } from 'vitest';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import { MonitoredFleet } from '../support/monitored-fleet.ts';

const NODES = ['first', 'second', 'third', 'alive-1', 'alive-2', 'alive-3'];
/** A tick each second. */
const EACH_SECOND = { nodeMonitorPeriodSeconds: 1 };

/** first, second and third have failed one second apart, 0.1 taints a second; nothing is tainted yet. */
async function firstSecondThird(refuses?: (nodeName: string) => boolean): Promise<MonitoredFleet> {
  const fleet = await MonitoredFleet.of(
    NODES.map((nodeName) => ({ nodeName, beats: true })),
    EACH_SECOND,
    refuses === undefined
      ? {}
      : {
          // A Node that somebody else changes at each attempt: its commit is refused.
          between: (items) => ({
            ...items,
            async transact(writes) {
              const node = writes.find(({ kind, key }) => kind !== 'check' && key.pk.startsWith('o#nodes#'));
              if (node === undefined || !refuses(`${node.key.pk} ${node.key.sk}`)) return items.transact(writes);
              return { kind: 'refused', failures: [{ index: writes.indexOf(node) }] };
            },
          }),
        },
  );
  for (const [index, nodeName] of NODES.slice(0, 3).entries()) {
    await fleet.post(nodeName, 'False', index * 1_000);
    await fleet.pass(index * 1_000);
  }
  return fleet;
}

describe('RQ rate-limited timed queue', () => {
  it('RQ-02 removes the first: a node that is well again leaves, and is not among the seen ones', async () => {
    const fleet = await firstSecondThird();
    await fleet.post('first', 'True', 3_000);
    await fleet.pass(3_000);
    expect(await fleet.waiting()).toEqual(['second since 1 s', 'third since 2 s']);
    await fleet.post('first', 'False', 4_000);
    await fleet.pass(4_000);
    expect(await fleet.waiting()).toEqual(['second since 1 s', 'third since 2 s', 'first since 4 s']);
  });

  it('RQ-04 removes the last', async () => {
    const fleet = await firstSecondThird();
    await fleet.post('third', 'True', 3_000);
    await fleet.pass(3_000);
    expect(await fleet.waiting()).toEqual(['first since 0 s', 'second since 1 s']);
    await fleet.post('third', 'False', 4_000);
    await fleet.pass(4_000);
    expect(await fleet.waiting()).toEqual(['first since 0 s', 'second since 1 s', 'third since 4 s']);
  });

  it('RQ-06 (ours, D4) calls in order of enqueueing; a node that cannot be tainted keeps its place and delays no other', async () => {
    let isSecondInTheWay = true;
    const fleet = await firstSecondThird((key) => isSecondInTheWay && key.includes('second'));
    const called = [await fleet.evict(3_000), await fleet.evict(13_000), await fleet.evict(14_000)];
    expect(called).toEqual([['first'], ['third'], []]);
    expect(await fleet.waiting()).toEqual(['second since 1 s']);
    isSecondInTheWay = false;
    expect([await fleet.evict(15_000), await fleet.evict(23_000)]).toEqual([[], ['second']]);
  });

  it('RQ-08 empties the queue: total disruption withdraws whoever waits', async () => {
    const fleet = await MonitoredFleet.of(
      ['first', 'second', 'third', 'alive'].map((nodeName) => ({
        nodeName,
        ready: nodeName === 'alive' ? 'True' : 'False',
        beats: true,
      })),
      { largeClusterSizeThreshold: 3 },
    );
    await fleet.pass(0);
    expect(await fleet.waiting()).toHaveLength(3);
    await fleet.post('alive', 'False', 5_000);
    await fleet.pass(5_000);
    expect(await fleet.waiting()).toEqual([]);
  });

  it('RQ-10 refuses a processed name until it is removed', async () => {
    const fleet = await firstSecondThird();
    await fleet.post('second', 'True', 3_000);
    await fleet.pass(3_000);
    expect([await fleet.evict(3_000), await fleet.evict(13_000)]).toEqual([['first'], ['third']]);
    await fleet.pass(23_000);
    expect(await fleet.waiting()).toEqual([]);
    expect(await fleet.evict(23_000)).toEqual([]);
    await fleet.post('first', 'True', 24_000);
    await fleet.pass(24_000);
    await fleet.post('first', 'False', 25_000);
    await fleet.pass(25_000);
    expect(await fleet.waiting()).toEqual(['first since 25 s']);
  });

  it('RQ-12 removes no node when a node that never waited is healthy', async () => {
    const fleet = await firstSecondThird();
    await fleet.post('alive-1', 'True', 3_000);
    await fleet.pass(3_000);
    expect(await fleet.waiting()).toEqual(['first since 0 s', 'second since 1 s', 'third since 2 s']);
  });

  it('RQ-14 (ours, D4) uses no token for a taint that could not be written: the next node gets it', async () => {
    let isFirstInTheWay = true;
    const fleet = await firstSecondThird((key) => isFirstInTheWay && key.includes('first'));
    expect(await fleet.evict(3_000)).toEqual(['second']);
    isFirstInTheWay = false;
    expect(await fleet.evict(3_100)).toEqual([]);
    expect([await fleet.evict(13_000), await fleet.evict(23_000)]).toEqual([['first'], ['third']]);
  });

  it('RQ-16 starts the slower limiter drained: a token used at 0 s, the rate changed at 3 s, the next at 103 s', async () => {
    // Two of six are dark; with two more the zone is partially disrupted, and large enough for the secondary rate.
    const fleet = await MonitoredFleet.of(
      NODES.map((nodeName) => ({ nodeName, beats: true, ready: /first|second/.test(nodeName) ? 'False' : 'True' })),
      { ...EACH_SECOND, largeClusterSizeThreshold: 5, secondaryNodeEvictionRatePerSecond: 0.01 },
    );
    await fleet.pass(0);
    expect(await fleet.evict(0)).toEqual(['first']);
    for (const nodeName of ['third', 'alive-1']) await fleet.post(nodeName, 'False', 2_500);
    await fleet.pass(3_000);
    expect((await fleet.zone(''))?.limiter.ratePerSecond).toBe(0.01);
    expect([await fleet.evict(102_999), await fleet.evict(103_000)]).toEqual([[], ['second']]);
  });

  it('RQ-18 changes nothing at the same rate', async () => {
    const fleet = await firstSecondThird();
    await fleet.evict(3_000);
    const before = await fleet.zone('');
    expect(before?.limiter).toEqual({ ratePerSecond: 0.1, tatMs: 13_000 });
    // By node-monitor, which sees the rate unchanged, and by the write itself.
    await fleet.pass(4_000);
    const same = { nowMs: 4_000, fromPerSecond: 0.1, toPerSecond: 0.1 };
    await fleetStore(fleet.fleet.tables).setZoneRate('', same);
    expect(await fleet.zone('')).toEqual(before);
  });

  it('RQ-20 spends no token on an empty queue', async () => {
    const fleet = await MonitoredFleet.of(NODES.map((nodeName) => ({ nodeName, beats: true })));
    await fleet.run(0, 3_600_000, 60_000);
    await fleet.post('first', 'False', 3_604_000);
    await fleet.pass(3_605_000);
    expect(await fleet.evict(3_605_000)).toEqual(['first']);
  });
});
