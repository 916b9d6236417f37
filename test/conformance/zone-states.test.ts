/** ZS: zone states, by node-monitor and evictor. Grace 50 s, unhealthy threshold 0.55, large zone over 50 nodes. */
import { describe, expect, it } from 'vitest';
import type { ConditionStatus } from '../../shared/kubernetes/kubernetes.ts';
import { type AskedNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const T0 = Date.UTC(2015, 0, 1, 12);
const HOUR = 3_600_000;
const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };
const Z1 = 'r1/z1';
const EXCLUDED = { 'node.kubernetes.io/exclude-disruption': '' };

const nodes = (
  zone: string,
  statuses: readonly (ConditionStatus | undefined)[],
  statusAtMs: number = T0,
): AskedNode[] =>
  statuses.map((ready, index) => ({
    nodeName: `${zone === '' ? 'x' : zone.replace('/', '-')}-${index}`,
    zone,
    ready,
    createdAtMs: Math.min(T0, statusAtMs),
    statusAtMs,
  }));
const stateOf = async (fleet: MonitoredFleet, zone: string) => (await fleet.zone(zone))?.state;
/** The state of a zone of so many nodes that have just posted. */
async function counted(ready: number, notReady: number) {
  const statuses = [...Array<'True'>(ready).fill('True'), ...Array<'False'>(notReady).fill('False')];
  const fleet = await MonitoredFleet.of(nodes('z', statuses), GRACE_50);
  await fleet.pass(T0);
  return stateOf(fleet, 'z');
}

describe('ZS zone states', () => {
  it('ZS-01 keeps the zone of nodes without labels Normal', async () => {
    const fleet = await MonitoredFleet.of(nodes('', ['True']), GRACE_50);
    await fleet.pass(T0);
    expect(await stateOf(fleet, '')).toBe('Normal');
    await fleet.post('x-0', 'True', T0 + HOUR);
    await fleet.pass(T0 + HOUR);
    expect(await stateOf(fleet, '')).toBe('Normal');
  });

  it('ZS-03 changes from FullDisruption to PartialDisruption when one of four is Ready', async () => {
    const fleet = await MonitoredFleet.of(nodes(Z1, [undefined, undefined, undefined, undefined]), GRACE_50);
    await fleet.pass(T0);
    expect(await stateOf(fleet, Z1)).toBe('FullDisruption');
    await fleet.post('r1-z1-3', 'True', T0 + HOUR);
    await fleet.pass(T0 + HOUR);
    expect(await stateOf(fleet, Z1)).toBe('PartialDisruption');
  });

  it('ZS-05 is Normal with two not ready of three, and FullDisruption with all', async () => {
    const fleet = await MonitoredFleet.of(nodes(Z1, ['Unknown', 'Unknown', 'True']), GRACE_50);
    await fleet.pass(T0);
    expect(await stateOf(fleet, Z1)).toBe('Normal');
    await fleet.pass(T0 + HOUR);
    expect(await stateOf(fleet, Z1)).toBe('FullDisruption');
  });

  it('ZS-07 keeps two dark zones of one node each fully disrupted', async () => {
    const fleet = await MonitoredFleet.of([...nodes(Z1, ['Unknown']), ...nodes('r2/z2', ['Unknown'])], GRACE_50);
    for (const atMs of [T0, T0 + HOUR]) {
      await fleet.pass(atMs);
      expect([await stateOf(fleet, Z1), await stateOf(fleet, 'r2/z2')]).toEqual(['FullDisruption', 'FullDisruption']);
    }
  });

  it('ZS-09 does not count a node with the exclude-disruption label', async () => {
    const master = { nodeName: 'node-master', zone: Z1, labels: EXCLUDED, createdAtMs: T0 };
    const fleet = await MonitoredFleet.of([...nodes(Z1, ['Unknown']), master], GRACE_50);
    for (const atMs of [T0, T0 + HOUR]) {
      await fleet.post('node-master', 'True', atMs);
      await fleet.pass(atMs);
      expect(await stateOf(fleet, Z1)).toBe('FullDisruption');
    }
  });

  it('ZS-11 excludes no node by name', async () => {
    const fleet = await MonitoredFleet.of(
      [{ nodeName: 'master-abc', zone: 'z', ready: 'False', createdAtMs: T0 }],
      GRACE_50,
    );
    await fleet.pass(T0);
    expect(await stateOf(fleet, 'z')).toBe('FullDisruption');
    await fleet.pass(T0 + 60_000);
    expect(fleet.measured('node_collector_unhealthy_nodes_in_zone', 'z')).toEqual([1]);
  });

  it('ZS-13 is PartialDisruption with 11 of 20 not ready, Normal with 10', async () => {
    expect(await counted(9, 11)).toBe('PartialDisruption');
    expect(await counted(10, 10)).toBe('Normal');
  });

  it('ZS-15 is Normal with 2 of 3 not ready, FullDisruption with 1 of 1', async () => {
    expect(await counted(1, 2)).toBe('Normal');
    expect(await counted(0, 1)).toBe('FullDisruption');
  });

  it('ZS-17 builds the zone key from the beta labels where both are there', async () => {
    const labels = {
      'failure-domain.beta.kubernetes.io/zone': 'a',
      'failure-domain.beta.kubernetes.io/region': 'r',
      'topology.kubernetes.io/zone': 'b',
      'topology.kubernetes.io/region': 's',
    };
    const fleet = await MonitoredFleet.of([{ nodeName: 'n', labels, createdAtMs: T0 }], GRACE_50);
    await fleet.pass(T0);
    expect((await fleet.fleet.records()).zones.map(({ zone }) => zone)).toEqual(['r/a']);
  });

  it('ZS-19 counts exactly the threshold as disruption: 55 of 100, not 54', async () => {
    expect(await counted(45, 55)).toBe('PartialDisruption');
    expect(await counted(46, 54)).toBe('Normal');
  });

  it('ZS-21 taints no node when all zones are dark', async () => {
    const longAgo = T0 - HOUR;
    const fleet = await MonitoredFleet.of(
      [...nodes('a', ['Unknown'], longAgo), ...nodes('b', ['Unknown'], longAgo)],
      GRACE_50,
    );
    await fleet.pass(T0);
    await fleet.evictFor(T0, T0 + 60_000);
    expect([await stateOf(fleet, 'a'), await stateOf(fleet, 'b')]).toEqual(['FullDisruption', 'FullDisruption']);
    expect(fleet.taintings).toEqual([]);
  });

  it('ZS-23 taints no node when the only Ready node is excluded', async () => {
    const excluded = { nodeName: 'spare', zone: 'z1', labels: EXCLUDED, createdAtMs: T0 };
    const fleet = await MonitoredFleet.of([...nodes('z1', ['Unknown'], T0 - HOUR), excluded], GRACE_50);
    await fleet.pass(T0);
    await fleet.evictFor(T0, T0 + 60_000);
    expect(await stateOf(fleet, 'z1')).toBe('FullDisruption');
    expect(fleet.taintings).toEqual([]);
  });

  it('ZS-25 taints in a partially disrupted zone at the secondary rate if it is large, and never if it is small', async () => {
    const dark = nodes('z', ['Unknown', 'Unknown', 'Unknown'], T0 - HOUR);
    const alive = [0, 1].map((index) => ({ nodeName: `z-alive-${index}`, zone: 'z', createdAtMs: T0 }));
    const small = await MonitoredFleet.of([...dark, ...alive], GRACE_50);
    const large = await MonitoredFleet.of([...dark, ...alive], {
      ...GRACE_50,
      largeClusterSizeThreshold: 4,
      secondaryNodeEvictionRatePerSecond: 0.1,
    });
    for (const fleet of [small, large]) {
      await fleet.pass(T0);
      await fleet.evictFor(T0, T0 + 60_000);
      expect(await stateOf(fleet, 'z')).toBe('PartialDisruption');
    }
    expect(small.taintings).toEqual([]);
    expect(large.taintings.map(({ atMs, nodeName }) => [(atMs - T0) / 1_000, nodeName])).toEqual([
      [0, 'z-0'],
      [10, 'z-1'],
      [20, 'z-2'],
    ]);
  });
});
