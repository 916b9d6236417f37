import { describe, expect, it } from 'vitest';
import { START_MS, settledFleet } from '../../test/support/controlled-fleet.ts';

describe('a tick of node-monitor', () => {
  it('marks a silent node once, with its taint and its event, and no other node', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    await fleet.run(0, 40, async (seconds) => seconds % 10 === 0 && fleet.beat('a-0', 'a-1'));
    expect(await fleet.ready('a-2')).toBe('True');
    await fleet.run(45, 60, async (seconds) => seconds % 10 === 0 && fleet.beat('a-0', 'a-1'));
    expect(await fleet.ready('a-2')).toBe('Unknown');
    expect(await fleet.ready('a-0')).toBe('True');
    expect(await fleet.taints('a-2')).toContain('unreachable:NoSchedule');
    expect(await fleet.taints('a-0')).toEqual([]);
    expect(await fleet.health('a-2')).toMatchObject({ ready: 'Unknown', suspect: true, markedAtMs: START_MS + 45_000 });
    const events = await fleet.events('NodeNotReady');
    expect(events).toHaveLength(1);
    const node = await fleet.node('a-2');
    expect(events[0]).toMatchObject({
      metadata: { namespace: 'default' },
      involvedObject: { kind: 'Node', name: 'a-2', uid: node?.metadata.uid },
      message: 'Node a-2 status is now: NodeNotReady',
      source: { component: 'node-controller' },
      type: 'Normal',
      count: 1,
    });
    expect(node?.status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      reason: 'NodeStatusUnknown',
      lastTransitionTime: '2026-01-01T00:00:45Z',
    });
  });

  it('costs one write and one and a half read units beyond the scan when the fleet is quiet, and logs nothing', async () => {
    const { fleet, names } = await settledFleet({ a: 2, b: 2 });
    await fleet.run(0, 10, () => fleet.beat(...names));
    fleet.at(15);
    fleet.consumed();
    fleet.told.length = 0;
    const report = await fleet.controllers.tickNodeMonitor(fleet.slot());
    expect(report).toEqual({ kind: 'ran', decisions: 0, marked: 0, left: 0, sent: 0, awaited: 0 });
    const { writes, writeUnits, requests } = fleet.consumed();
    expect({ writes, writeUnits }).toEqual({ writes: 1, writeUnits: 1 });
    const control = requests.filter(({ table, readUnits }) => table === 'control' && readUnits > 0);
    expect(control.map(({ readUnits }) => readUnits)).toEqual([1, 0.5]);
    expect(fleet.told).toEqual([]);
  });

  it('emits no metric of a zone that lasts for seconds, whatever a machine calls its zone', async () => {
    const { fleet } = await settledFleet({ a: 4 });
    await fleet.run(0, 90, async (seconds) => {
      if (seconds % 10 === 0) await fleet.beat('a-0', 'a-1', 'a-2', 'a-3');
      const zone = { 'topology.kubernetes.io/zone': `hop-${seconds}` };
      await fleet.changeNode('a-3', (node) => ({
        ...node,
        metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...zone } },
      }));
    });
    const zones = new Set(fleet.metrics.flatMap(({ zone }) => (zone === undefined ? [] : [zone])));
    expect([...zones]).toEqual(['a']);
    // The records go with their zones.
    expect((await fleet.records()).zones.length).toBeLessThan(5);
  });

  it('emits the figures of each zone at every tick, with the zone as the only dimension', async () => {
    const { fleet } = await settledFleet({ a: 4 });
    await fleet.run(0, 105, async (seconds) => seconds % 10 === 0 && fleet.beat('a-0', 'a-1', 'a-2'));
    const last = (name: string) => fleet.metrics.findLast((metric) => metric.name === name);
    expect(last('node_collector_zone_size')).toEqual({
      name: 'node_collector_zone_size',
      value: 4,
      unit: 'Count',
      zone: 'a',
    });
    expect(last('node_collector_zone_health')).toMatchObject({ value: 75, unit: 'Percent' });
    expect(last('node_collector_unhealthy_nodes_in_zone')).toMatchObject({ value: 1 });
    expect(last('node_collector_evictions_total')).toMatchObject({ value: 1, zone: 'a' });
    expect(last('tick_age_seconds')).toMatchObject({ value: 0, unit: 'Seconds' });
  });

  it('skips a slot that is too late, and one that is claimed', async () => {
    const { fleet } = await settledFleet({ a: 1 });
    fleet.at(300);
    expect((await fleet.controllers.tickNodeMonitor(fleet.slot() - 14)).kind).toBe('stale');
    expect((await fleet.controllers.tickNodeMonitor(fleet.slot())).kind).toBe('ran');
    expect((await fleet.controllers.tickNodeMonitor(fleet.slot())).kind).toBe('lost');
    expect((await fleet.controllers.tickNodeMonitor(fleet.slot() - 1)).kind).toBe('lost');
  });

  it('removes taints, mark and queue entry when the node is Ready again', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    const others = (seconds: number) => (seconds % 10 === 0 ? fleet.beat('a-0', 'a-1') : Promise.resolve());
    await fleet.run(0, 60, others);
    expect(await fleet.taints('a-2')).toEqual(['unreachable:NoExecute', 'unreachable:NoSchedule']);
    fleet.at(62);
    await fleet.beat('a-2');
    await fleet.streams();
    expect(await fleet.ready('a-2')).toBe('Unknown');
    await fleet.post('a-2');
    await fleet.streams();
    expect(await fleet.taints('a-2')).toEqual([]);
    expect(await fleet.health('a-2')).toMatchObject({ ready: 'True', suspect: false });
    expect((await fleet.health('a-2'))?.markedAtMs).toBeUndefined();
    expect((await fleet.records()).queue).toEqual([]);
  });

  it('removes a waiting node from the queue at its first heartbeat', async () => {
    const { fleet } = await settledFleet({ a: 5 }, { policy: { nodeEvictionRatePerSecond: 0.01 } });
    await fleet.run(0, 50, async (seconds) => seconds % 10 === 0 && fleet.beat('a-0', 'a-1', 'a-2'));
    const waiting = (await fleet.records()).queue.map(({ nodeName }) => nodeName);
    expect(waiting).toHaveLength(1);
    fleet.at(51);
    await fleet.beat(waiting[0]!);
    await fleet.streams();
    expect((await fleet.records()).queue).toEqual([]);
    await fleet.run(55, 85, async () => fleet.beat('a-0', 'a-1', 'a-2', waiting[0]!));
    expect(await fleet.taints(waiting[0]!)).toEqual(['unreachable:NoSchedule']);
  });

  it('marks a node even when reading the fleet took longer than a period', async () => {
    let slowly = false;
    const { fleet } = await settledFleet(
      { a: 2 },
      {
        between: (items) => ({
          ...items,
          scan: async (request) => {
            if (slowly) {
              slowly = false;
              fleet.at(fleet.seconds() + 6);
            }
            return items.scan(request);
          },
        }),
      },
    );
    await fleet.run(0, 40, () => fleet.beat('a-0'));
    fleet.at(45);
    slowly = true;
    expect(await fleet.controllers.tickNodeMonitor(fleet.slot())).toMatchObject({ kind: 'ran', marked: 1 });
    expect(fleet.seconds()).toBe(51);
    expect(await fleet.ready('a-1')).toBe('Unknown');
  });
});
