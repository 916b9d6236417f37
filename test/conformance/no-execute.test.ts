/** NX: NoExecute tainting, by node-monitor, evictor and the stream of Nodes. Grace 50 s. */
import { describe, expect, it } from 'vitest';
import { MonitoredFleet } from '../support/monitored-fleet.ts';

const T1 = Date.UTC(2017, 0, 1, 12);
const LONG_AGO = Date.UTC(2015, 0, 1, 12);
const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };
const silent = { createdAtMs: LONG_AGO, ready: 'Unknown' } as const;
const alive = { createdAtMs: T1, beats: true };

describe('NX NoExecute tainting', () => {
  it('NX-02 lifts the taint of a node that is Ready again', async () => {
    const fleet = await MonitoredFleet.of(
      [
        { nodeName: 'node0', ...silent },
        { nodeName: 'node1', ...alive },
        { nodeName: 'node2', ...alive, ready: 'False' },
        { nodeName: 'node3', ...alive },
      ],
      { ...GRACE_50, nodeEvictionRatePerSecond: 100 },
    );
    await fleet.pass(T1);
    // One token in one instant, at any rate.
    expect([await fleet.evict(T1), await fleet.evict(T1 + 10)]).toEqual([['node0'], ['node2']]);
    expect([await fleet.taints('node0'), await fleet.taints('node2')]).toEqual([['unreachable'], ['notReady']]);
    await fleet.post('node2', 'True', T1 + 5_000);
    await fleet.pass(T1 + 5_000);
    await fleet.evict(T1 + 5_000);
    expect(await fleet.taints('node2')).toEqual([]);
    expect(await fleet.taints('node0')).toEqual(['unreachable']);
  });

  it('NX-04 taints no node while nodes are Ready', async () => {
    const fleet = await MonitoredFleet.of(
      ['node0', 'node1'].map((nodeName) => ({ nodeName, ...alive })),
      GRACE_50,
    );
    await fleet.run(T1, T1 + 60_000);
    expect(fleet.taintings).toEqual([]);
  });

  it('NX-06 lifts unreachable from a node that posts again', async () => {
    const fleet = await MonitoredFleet.of(
      [
        { nodeName: 'node0', createdAtMs: T1 },
        { nodeName: 'node1', ...alive },
      ],
      GRACE_50,
    );
    await fleet.run(T1, T1);
    await fleet.run(T1 + 55_000, T1 + 55_000);
    expect(await fleet.taints('node0')).toEqual(['unreachable']);
    await fleet.post('node0', 'True', T1 + 56_000);
    await fleet.fleet.streams();
    expect(await fleet.taints('node0')).toEqual([]);
  });

  it('NX-08 changes unreachable for not-ready when the node posts Ready False', async () => {
    const fleet = await MonitoredFleet.of(
      [
        { nodeName: 'node0', ...silent, taint: 'unreachable' },
        { nodeName: 'node1', ...alive },
      ],
      GRACE_50,
    );
    await fleet.run(T1, T1);
    expect(await fleet.taints('node0')).toEqual(['unreachable']);
    await fleet.post('node0', 'False', T1 + 1_000);
    await fleet.run(T1 + 5_000, T1 + 5_000);
    expect(await fleet.taints('node0')).toEqual(['notReady']);
  });

  it('NX-10 changes not-ready for unreachable in the very pass that finds the node silent, and keeps its time (D6)', async () => {
    const fleet = await MonitoredFleet.of(
      [
        { nodeName: 'node0', createdAtMs: LONG_AGO, ready: 'False', taint: 'notReady' },
        { nodeName: 'node1', ...alive },
      ],
      GRACE_50,
    );
    await fleet.pass(T1);
    expect(await fleet.ready('node0')).toBe('Unknown');
    const noExecute = (await fleet.node('node0')).spec?.taints?.filter(({ effect }) => effect === 'NoExecute');
    // The clock of the pods runs on.
    expect(noExecute).toEqual([
      { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', timeAdded: '2015-01-01T12:00:00Z' },
    ]);
  });

  it('NX-12 writes nothing more while the taint stands', async () => {
    const fleet = await MonitoredFleet.of(
      [
        { nodeName: 'node0', ...silent },
        { nodeName: 'node1', ...alive },
      ],
      GRACE_50,
    );
    await fleet.run(T1, T1);
    expect(fleet.taintings).toHaveLength(1);
    const before = await fleet.node('node0');
    await fleet.run(T1 + 5_000, T1 + 50_000);
    expect(await fleet.node('node0')).toEqual(before);
    expect(await fleet.waiting()).toEqual([]);
  });

  it('NX-14 drops a queued node that was deleted, without a token', async () => {
    const fleet = await MonitoredFleet.of(
      [
        { nodeName: 'node0', ...silent },
        { nodeName: 'node1', ...silent },
        { nodeName: 'node2', ...alive },
      ],
      GRACE_50,
    );
    await fleet.pass(T1);
    expect(await fleet.waiting()).toHaveLength(2);
    await fleet.remove('node0');
    expect(await fleet.evict(T1)).toEqual(['node1']);
    expect(await fleet.waiting()).toEqual([]);
  });

  it('NX-16 taints by the state at its turn: queued as Ready False, Unknown by then', async () => {
    const fleet = await MonitoredFleet.of(
      [
        { nodeName: 'node0', ...alive, ready: 'False' },
        { nodeName: 'node1', ...alive },
      ],
      GRACE_50,
    );
    await fleet.pass(T1);
    await fleet.post('node0', 'Unknown', T1 + 1_000);
    expect(await fleet.evict(T1 + 1_000)).toEqual(['node0']);
    expect(await fleet.taints('node0')).toEqual(['unreachable']);
  });

  it('NX-18 counts taintings, not instant swaps', async () => {
    const fleet = await MonitoredFleet.of(
      [
        { nodeName: 'n0', zone: 'A', ...silent },
        { nodeName: 'n1', zone: 'A', ...silent },
        { nodeName: 'n2', zone: 'A', ...alive },
      ],
      GRACE_50,
    );
    await fleet.run(T1, T1 + 10_000);
    await fleet.post('n0', 'False', T1 + 12_000);
    await fleet.run(T1 + 15_000, T1 + 15_000);
    expect(fleet.taintings).toHaveLength(2);
    expect(fleet.swaps).toBe(1);
    expect(fleet.measured('node_collector_evictions_total', 'A')).toEqual([1, 1]);
  });
});
