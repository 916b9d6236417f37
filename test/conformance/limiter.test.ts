/**
 * LM: limiter per zone state, total disruption, by node-monitor and evictor. Rates 0.1 and 0.01 per second, large zone
 * over 50 nodes.
 */
import { describe, expect, it } from 'vitest';
import type { ConditionStatus } from '../../shared/kubernetes/kubernetes.ts';
import { type AskedNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };

/** Nodes that have just posted this and go on beating for the whole case. */
const nodes = (zone: string, count: number, ready: ConditionStatus): AskedNode[] =>
  Array.from({ length: count }, (_, index) => ({ nodeName: `${zone}-${ready}-${index}`, zone, ready, beats: true }));

describe('LM limiter per zone state', () => {
  it('LM-02 taints no node in a small zone in partial disruption', async () => {
    const fleet = await MonitoredFleet.of([...nodes('z', 30, 'False'), ...nodes('z', 20, 'True')], GRACE_50);
    await fleet.run(0, 320_000);
    expect(await fleet.zone('z')).toMatchObject({ state: 'PartialDisruption', limiter: { ratePerSecond: 0 } });
    expect(fleet.taintings).toEqual([]);
  });

  it('LM-04 leaves the usual rate to a dark zone beside a Normal one', async () => {
    const fleet = await MonitoredFleet.of([...nodes('a', 3, 'False'), ...nodes('b', 3, 'True')], GRACE_50);
    await fleet.run(0, 20_000);
    expect(await fleet.zone('a')).toMatchObject({ state: 'FullDisruption', limiter: { ratePerSecond: 0.1 } });
    expect(await fleet.zone('b')).toMatchObject({ state: 'Normal', limiter: { ratePerSecond: 0.1 } });
    expect(fleet.taintings.map(({ atMs }) => atMs)).toEqual([0, 10_000, 20_000]);
  });

  it('LM-06 resumes tainting at one node per second after total disruption, from a drained limiter (D3)', async () => {
    const fleet = await MonitoredFleet.of(nodes('z', 3, 'True'), { ...GRACE_50, nodeEvictionRatePerSecond: 1 });
    await fleet.pass(0);
    for (const index of [0, 1, 2]) await fleet.post(`z-True-${index}`, 'False', 4_000);
    for (let atMs = 5_000; atMs <= 120_000; atMs += 500) {
      if (atMs === 99_500) await fleet.post('z-True-0', 'True', atMs);
      if (atMs % 5_000 === 0) await fleet.pass(atMs);
      await fleet.evict(atMs);
    }
    expect(fleet.taintings.map(({ atMs }) => atMs)).toEqual([101_000, 102_000]);
  });

  it('LM-08 changes no state and no limiter while all zones stay dark, and taints no node', async () => {
    const fleet = await MonitoredFleet.of([...nodes('a', 2, 'False'), ...nodes('b', 2, 'False')], GRACE_50);
    await fleet.pass(0);
    const before = await fleet.fleet.records();
    expect(before.state.disruption.total).toBe(true);
    await fleet.run(5_000, 60_000);
    expect((await fleet.fleet.records()).zones).toEqual(before.zones);
    expect(fleet.taintings).toEqual([]);
  });

  it('LM-10 drops a zone with its last node, and measures it empty once', async () => {
    const fleet = await MonitoredFleet.of([...nodes('a', 1, 'True'), ...nodes('b', 1, 'True')], GRACE_50);
    await fleet.pass(0);
    await fleet.pass(60_000);
    await fleet.remove('a-True-0');
    const sizes = () => fleet.measured('node_collector_zone_size', 'a');
    const before = sizes().length;
    await fleet.pass(120_000);
    expect(sizes().slice(before)).toEqual([0]);
    expect(await fleet.zone('a')).toBeUndefined();
    await fleet.pass(180_000);
    expect(sizes().slice(before)).toEqual([0]);
  });

  it('LM-12 measures 8 nodes with 2 not ready as 75 % healthy', async () => {
    const fleet = await MonitoredFleet.of([...nodes('z', 6, 'True'), ...nodes('z', 2, 'False')], GRACE_50);
    await fleet.pass(0);
    await fleet.pass(60_000);
    expect(fleet.measured('node_collector_zone_size', 'z')).toEqual([8]);
    expect(fleet.measured('node_collector_zone_health', 'z')).toEqual([75]);
    expect(fleet.measured('node_collector_unhealthy_nodes_in_zone', 'z')).toEqual([2]);
  });
});
