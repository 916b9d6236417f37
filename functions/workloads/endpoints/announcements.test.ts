import { describe, expect, it } from 'vitest';
import { SERVICES_ANNOTATION, settleServiceReader } from '../../../shared/fleet/nodes/service-readers.ts';
import type { KubeEndpointSlice, KubeNode, KubeObject } from '../../../shared/kinds/types.ts';
import { healthKey } from '../../../shared/store/layout.ts';
import { workloadCluster } from '../../../test/support/workload-cluster.ts';
import { concernedZones, unitedZones } from './announcements.rule.ts';

const slice = (...zones: (string | undefined)[]): KubeEndpointSlice => ({
  metadata: { name: 's' },
  addressType: 'IPv4',
  endpoints: zones.map((zone, index) => ({
    addresses: [`10.0.0.${index}`],
    conditions: { ready: true },
    ...(zone !== undefined && { zone }),
  })),
  ports: [{ port: 80 }],
});
const SLICES = { resource: 'endpointslices' };

describe('a change concerns', () => {
  it('the zones of the endpoints that it changes', () => {
    const zones = (before: KubeObject | undefined, after: KubeObject | undefined) =>
      concernedZones(SLICES, before, after);
    expect(zones(undefined, slice('a', 'b', 'a'))).toEqual(['a', 'b']);
    expect(zones(slice('a', 'b'), slice('a', 'b'))).toEqual([]);
    expect(zones(slice('a', 'b'), slice('a', 'c'))).toEqual(['b', 'c']);
    expect(zones(slice('a', 'b'), slice('a'))).toEqual(['b']);
    expect(zones(slice('a', 'b'), undefined)).toEqual(['a', 'b']);
    expect(zones(slice('a', 'b'), { ...slice('a', 'b'), ports: [] })).toEqual(['a', 'b']);
    expect(zones(undefined, slice())).toEqual([]);
  });

  it('all zones, if an endpoint has none, or if there are many', () => {
    expect(concernedZones(SLICES, undefined, slice('a', undefined))).toEqual(['']);
    const many = Array.from({ length: 17 }, (_, index) => `z${index}`);
    expect(unitedZones(many, ['z0'])).toEqual(['']);
    expect(unitedZones(['a'], ['a', 'b'])).toEqual(['a', 'b']);
  });

  it('all zones, if the spec of a Service or of a policy changes; no zone, if a status changes', () => {
    const service = { metadata: { name: 's' }, spec: { ports: [] } };
    for (const resource of ['services', 'networkpolicies']) {
      expect(concernedZones({ resource }, undefined, service)).toEqual(['']);
      expect(concernedZones({ resource }, service, undefined)).toEqual(['']);
      expect(concernedZones({ resource }, service, { ...service, status: { loadBalancer: {} } })).toEqual([]);
    }
    expect(concernedZones({ resource: 'pods' }, undefined, service)).toEqual([]);
  });
});

async function clusterWithReader() {
  const cluster = workloadCluster();
  const node: KubeNode = {
    metadata: { name: 'n1', uid: 'u', resourceVersion: '1', annotations: { [SERVICES_ANNOTATION]: 'nftables' } },
  };
  await cluster.tables.write({ kind: 'put', key: healthKey('n1'), item: { u: 'u', b: 0 } });
  await settleServiceReader(cluster.tables, { nodeName: 'n1', uid: 'u' }, node);
  const version = async () => Number((await cluster.tables.get(healthKey('n1'), { consistent: true }))?.['E']);
  const createSlice = (name: string) => cluster.create('endpointslices', { ...slice('a'), metadata: { name } });
  return { cluster, version, createSlice };
}

describe('an agent that routes Services', () => {
  it('is notified once of all changes of a batch', async () => {
    const { cluster, version, createSlice } = await clusterWithReader();
    expect(await version()).toBe(1);
    for (const name of ['s1', 's2', 's3']) await createSlice(name);
    await cluster.settle();
    expect(await version()).toBe(2);
  });

  it('is notified of later changes after a pause, also if the process that knew the pause is killed', async () => {
    const { cluster, version, createSlice } = await clusterWithReader();
    await createSlice('s1');
    await cluster.settle();
    cluster.advance(1_000);
    for (const name of ['s2', 's3']) {
      await createSlice(name);
      await cluster.settle();
    }
    expect(await version()).toBe(2);
    cluster.advance(10_000);
    const other = cluster.makeControllers(cluster.tables);
    await other.tickWorkloads(Math.floor(cluster.now() / 5_000));
    expect(await version()).toBe(3);
    cluster.advance(10_000);
    await cluster.tick();
    expect(await version()).toBe(3);
  });

  it('is notified again of a batch that is delivered twice, and of one with failed writes', async () => {
    const { cluster, version, createSlice } = await clusterWithReader();
    await createSlice('s1');
    const batch = await cluster.records();
    let isThrottled = true;
    const controllers = cluster.makeControllers({
      ...cluster.tables,
      write: (write) => {
        if (isThrottled && write.key.table === 'health') throw new Error('throttled');
        return cluster.tables.write(write);
      },
    });
    await controllers.onWorkloadRecords(batch);
    expect(await version()).toBe(1);
    isThrottled = false;
    cluster.advance(60_000);
    await controllers.tickWorkloads(Math.floor(cluster.now() / 5_000));
    expect(await version()).toBe(2);
    cluster.advance(60_000);
    await cluster.controllers.onWorkloadRecords(batch);
    expect(await version()).toBe(3);
  });
});
