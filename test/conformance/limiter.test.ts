/** LM: limiter per zone state, total disruption. Rates 0.1 and 0.01 per second, large zone over 50 nodes. */
import { describe, expect, it } from 'vitest';
import type { ConditionStatus } from '../../shared/domain/kubernetes.ts';
import type { NodeHealth } from '../../shared/domain/node-health.ts';
import { defaultPolicy } from '../../shared/domain/policy.ts';
import { zoneRatePerSecond } from '../../shared/domain/zone-state.ts';
import { aNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };
const HOUR_LATER = 3_600_000;

/** Nodes that have just posted this and go on beating for the whole case. */
const nodes = (zone: string, count: number, ready: ConditionStatus): NodeHealth[] =>
  Array.from({ length: count }, (_, index) =>
    aNode({ nodeName: `${zone}-${ready}-${index}`, zone, ready, statusAtMs: 0, renewedAtMs: HOUR_LATER }),
  );

describe('LM limiter per zone state', () => {
  it('LM-02 taints nobody in a small zone in partial disruption', () => {
    const fleet = new MonitoredFleet([...nodes('z', 30, 'False'), ...nodes('z', 20, 'True')], GRACE_50);
    fleet.run(0, 320_000);
    expect(fleet.zone('z')).toMatchObject({ state: 'PartialDisruption', limiter: { ratePerSecond: 0 } });
    expect(fleet.taintings).toEqual([]);
  });

  it('LM-04 leaves the usual rate to a dark zone beside a Normal one', () => {
    const fleet = new MonitoredFleet([...nodes('a', 3, 'False'), ...nodes('b', 3, 'True')], GRACE_50);
    fleet.pass(0);
    expect(fleet.zone('a')).toMatchObject({ state: 'FullDisruption', limiter: { ratePerSecond: 0.1 } });
    expect(fleet.zone('b')).toMatchObject({ state: 'Normal', limiter: { ratePerSecond: 0.1 } });
    expect(zoneRatePerSecond('FullDisruption', 3, { ...defaultPolicy, fullDisruption: 'hold' })).toBe(0);
  });

  it('LM-06 resumes tainting at one a second after total disruption, from a drained limiter (D3)', () => {
    const fleet = new MonitoredFleet(nodes('z', 3, 'True'), { ...GRACE_50, nodeEvictionRatePerSecond: 1 });
    fleet.pass(0);
    for (const index of [0, 1, 2]) fleet.post(`z-True-${index}`, 'False', 5_000);
    for (let atMs = 5_000; atMs <= 300_000; atMs += 100) {
      if (atMs === 100_000) fleet.post('z-True-0', 'True', atMs);
      if (atMs % 5_000 === 0) fleet.pass(atMs);
      fleet.evict(atMs);
    }
    expect(fleet.taintings.map(({ atMs }) => atMs)).toEqual([101_000, 102_000]);
  });

  it('LM-08 changes no state and no limiter while all zones stay dark, and taints nobody', () => {
    const fleet = new MonitoredFleet([...nodes('a', 2, 'False'), ...nodes('b', 2, 'False')], GRACE_50);
    fleet.pass(0);
    const { zones } = fleet.world;
    expect(fleet.world.disruption.total).toBe(true);
    fleet.run(5_000, 60_000);
    expect(fleet.world.zones).toEqual(zones);
    expect(fleet.taintings).toEqual([]);
  });

  it('LM-10 drops a zone with its last node, and measures it empty once', () => {
    const fleet = new MonitoredFleet([...nodes('a', 1, 'True'), ...nodes('b', 1, 'True')], GRACE_50);
    fleet.pass(0);
    fleet.remove('a-True-0');
    const outcome = fleet.pass(5_000);
    expect(outcome.zoneMetrics[0]).toEqual({ zone: 'a', size: 0, healthPercent: 100, unhealthy: 0 });
    expect(fleet.zone('a')).toBeUndefined();
    expect(fleet.pass(10_000).zoneMetrics.map(({ zone }) => zone)).toEqual(['b']);
  });

  it('LM-12 measures 8 nodes with 2 not ready as 75 % healthy', () => {
    const fleet = new MonitoredFleet([...nodes('z', 6, 'True'), ...nodes('z', 2, 'False')], GRACE_50);
    expect(fleet.pass(0).zoneMetrics).toEqual([{ zone: 'z', size: 8, healthPercent: 75, unhealthy: 2 }]);
  });
});
