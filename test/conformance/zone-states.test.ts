/** ZS: zone states. Grace 50 s, unhealthy threshold 0.55, large zone over 50 nodes. */
import { describe, expect, it } from 'vitest';
import type { ConditionStatus } from '../../shared/domain/kubernetes.ts';
import { defaultPolicy } from '../../shared/domain/policy.ts';
import { isExcluded, zoneKeyOf } from '../../shared/domain/zone.ts';
import { zoneStateOf } from '../../shared/domain/zone-state.ts';
import { aNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const T0 = Date.UTC(2015, 0, 1, 12);
const HOUR = 3_600_000;
const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };
const Z1 = 'r1/z1';

const nodes = (zone: string, statuses: readonly (ConditionStatus | undefined)[], statusAtMs: number = T0) =>
  statuses.map((ready, index) =>
    aNode({ nodeName: `${zone === '' ? 'x' : zone}-${index}`, zone, ready, createdAtMs: T0, statusAtMs }),
  );
const stateOf = (fleet: MonitoredFleet, zone: string) => fleet.zone(zone)?.state;
const counted = (ready: number, notReady: number) => zoneStateOf({ ready, notReady }, defaultPolicy);

describe('ZS zone states', () => {
  it('ZS-01 keeps the zone of nodes without labels Normal', () => {
    const fleet = new MonitoredFleet(nodes('', ['True']), GRACE_50);
    fleet.pass(T0);
    expect(stateOf(fleet, '')).toBe('Normal');
    fleet.post('x-0', 'True', T0 + HOUR);
    fleet.pass(T0 + HOUR);
    expect(stateOf(fleet, '')).toBe('Normal');
  });

  it('ZS-03 goes from FullDisruption to PartialDisruption when one of four is Ready', () => {
    const created = [0, 1, 2, 3].map((index) =>
      aNode({ nodeName: `n-${index}`, zone: Z1, ready: undefined, createdAtMs: T0 }),
    );
    const fleet = new MonitoredFleet(created, GRACE_50);
    fleet.pass(T0);
    expect(stateOf(fleet, Z1)).toBe('FullDisruption');
    for (const name of ['n-0', 'n-1', 'n-2']) fleet.change(name, { ready: 'Unknown' });
    fleet.post('n-3', 'True', T0 + HOUR);
    fleet.pass(T0 + HOUR);
    expect(stateOf(fleet, Z1)).toBe('PartialDisruption');
  });

  it('ZS-05 is Normal with two not ready of three, and FullDisruption with all', () => {
    const fleet = new MonitoredFleet(nodes(Z1, ['Unknown', 'Unknown', 'True']), GRACE_50);
    fleet.pass(T0);
    expect(stateOf(fleet, Z1)).toBe('Normal');
    fleet.change(`${Z1}-2`, { ready: 'Unknown' });
    fleet.pass(T0 + HOUR);
    expect(stateOf(fleet, Z1)).toBe('FullDisruption');
  });

  it('ZS-07 keeps two dark zones of one node each fully disrupted', () => {
    const fleet = new MonitoredFleet([...nodes(Z1, ['Unknown']), ...nodes('r2/z2', ['Unknown'])], GRACE_50);
    for (const atMs of [T0, T0 + HOUR]) {
      fleet.pass(atMs);
      expect([stateOf(fleet, Z1), stateOf(fleet, 'r2/z2')]).toEqual(['FullDisruption', 'FullDisruption']);
    }
  });

  it('ZS-09 does not count a node with the exclude-disruption label', () => {
    const excluded = isExcluded({ 'node.kubernetes.io/exclude-disruption': '' });
    const master = aNode({ nodeName: 'node-master', zone: Z1, excluded, createdAtMs: T0, statusAtMs: T0 });
    const fleet = new MonitoredFleet([...nodes(Z1, ['Unknown']), master], GRACE_50);
    for (const atMs of [T0, T0 + HOUR]) {
      fleet.post('node-master', 'True', atMs);
      fleet.pass(atMs);
      expect(stateOf(fleet, Z1)).toBe('FullDisruption');
    }
  });

  it('ZS-11 excludes nobody by name', () => {
    expect(isExcluded({})).toBe(false);
    const fleet = new MonitoredFleet([aNode({ nodeName: 'master-abc', ready: 'False', statusAtMs: T0 })], GRACE_50);
    expect(fleet.pass(T0).zoneMetrics).toEqual([{ zone: '', size: 1, healthPercent: 0, unhealthy: 1 }]);
  });

  it('ZS-13 is PartialDisruption with 11 of 20 not ready, Normal with 10', () => {
    expect(counted(9, 11)).toBe('PartialDisruption');
    expect(counted(10, 10)).toBe('Normal');
  });

  it('ZS-15 is Normal with 2 of 3 not ready, FullDisruption with 1 of 1', () => {
    expect(counted(1, 2)).toBe('Normal');
    expect(counted(0, 1)).toBe('FullDisruption');
  });

  it('ZS-17 builds the zone key from the beta labels where both are there', () => {
    const labels = {
      'failure-domain.beta.kubernetes.io/zone': 'a',
      'failure-domain.beta.kubernetes.io/region': 'r',
      'topology.kubernetes.io/zone': 'b',
      'topology.kubernetes.io/region': 's',
    };
    expect(zoneKeyOf(labels)).toBe('r/a');
  });

  it('ZS-19 takes exactly the threshold for disruption: 55 of 100, not 54', () => {
    expect(counted(45, 55)).toBe('PartialDisruption');
    expect(counted(46, 54)).toBe('Normal');
  });

  it('ZS-21 taints nobody when all zones are dark', () => {
    const longAgo = T0 - HOUR;
    const fleet = new MonitoredFleet(
      [...nodes('a', ['Unknown'], longAgo), ...nodes('b', ['Unknown'], longAgo)],
      GRACE_50,
    );
    fleet.pass(T0);
    for (let atMs = T0; atMs <= T0 + 60_000; atMs += 100) fleet.evict(atMs);
    expect([stateOf(fleet, 'a'), stateOf(fleet, 'b')]).toEqual(['FullDisruption', 'FullDisruption']);
    expect(fleet.taintings).toEqual([]);
  });

  it('ZS-23 taints nobody when the only Ready node is excluded', () => {
    const excluded = aNode({ nodeName: 'spare', zone: 'z1', excluded: true, statusAtMs: T0 });
    const fleet = new MonitoredFleet([...nodes('z1', ['Unknown'], T0 - HOUR), excluded], GRACE_50);
    fleet.pass(T0);
    for (let atMs = T0; atMs <= T0 + 60_000; atMs += 100) fleet.evict(atMs);
    expect(stateOf(fleet, 'z1')).toBe('FullDisruption');
    expect(fleet.taintings).toEqual([]);
  });

  it('ZS-25 taints in a partially disrupted zone at the secondary rate if it is large, and never if it is small', () => {
    const dark = nodes('z', ['Unknown', 'Unknown', 'Unknown'], T0 - HOUR);
    const alive = ['True', 'True'].map((ready, index) =>
      aNode({ nodeName: `z-alive-${index}`, zone: 'z', ready: ready as ConditionStatus, statusAtMs: T0 }),
    );
    const small = new MonitoredFleet([...dark, ...alive], GRACE_50);
    const large = new MonitoredFleet([...dark, ...alive], {
      ...GRACE_50,
      largeClusterSizeThreshold: 4,
      secondaryNodeEvictionRatePerSecond: 0.1,
    });
    for (const fleet of [small, large]) {
      fleet.pass(T0);
      for (let atMs = T0; atMs <= T0 + 60_000; atMs += 100) fleet.evict(atMs);
      expect(stateOf(fleet, 'z')).toBe('PartialDisruption');
    }
    expect(small.taintings).toEqual([]);
    expect(large.taintings[0]?.nodeName).toBe('z-0');
  });
});
