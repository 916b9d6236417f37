/** Source: pkg/controller/endpointslicemirroring/{endpointslicemirroring_controller,reconciler}_test.go. */
import { describe, expect, it } from 'vitest';
import type { KubeEndpointSlice } from '../../../shared/kinds/types.ts';
import { MERGE } from '../../../test/support/api-in-memory.ts';
import { servedWorkloads } from '../../../test/support/served-workloads.ts';

const DEFAULT = '/api/v1/namespaces/default';
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
const PORTS = [{ name: 'db', port: 5432, protocol: 'TCP' }];
const subset = (...ips: string[]) => ({ addresses: ips.map((ip) => ({ ip })), ports: PORTS });

/** A Service without a selector, and Endpoints of a client. */
async function withEndpoints(subsets: object[], metadata: object = {}, spec: object = {}) {
  const cluster = servedWorkloads();
  await cluster.ok('POST', `${DEFAULT}/services`, {
    metadata: { name: 'db' },
    spec: { ports: [{ port: 5432 }], ...spec },
  });
  await cluster.ok('POST', `${DEFAULT}/endpoints`, { metadata: { name: 'db', ...metadata }, subsets });
  await cluster.settle();
  const slices = async () => {
    const { items } = await cluster.ok('GET', `${SLICES}?labelSelector=kubernetes.io/service-name=db`);
    return items as readonly KubeEndpointSlice[];
  };
  const patch = async (body: object, resource = 'endpoints') => {
    await cluster.api.send('PATCH', `${DEFAULT}/${resource}/db`, { body, contentType: MERGE });
    await cluster.settle();
  };
  const addresses = async () =>
    (await slices()).flatMap(({ endpoints = [] }) => endpoints.flatMap((each) => each.addresses));
  return { cluster, slices, patch, addresses };
}

describe('Endpoints of a Service without a selector', () => {
  it('are mirrored into one slice per family and ports', async () => {
    const { slices } = await withEndpoints(
      [
        { ...subset('10.0.0.1', 'fd00::1'), notReadyAddresses: [{ ip: '10.0.0.2', hostname: 'b', nodeName: 'n1' }] },
        { addresses: [{ ip: '10.0.0.3' }], ports: [{ port: 80, protocol: 'TCP' }] },
      ],
      { labels: { team: 'a' }, annotations: { note: 'x' } },
    );
    const found = (await slices()).toSorted((one, other) =>
      JSON.stringify(one.endpoints) < JSON.stringify(other.endpoints) ? -1 : 1,
    );
    expect(found).toMatchObject([
      {
        addressType: 'IPv4',
        metadata: {
          generateName: 'db-',
          labels: {
            team: 'a',
            'kubernetes.io/service-name': 'db',
            'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
          },
          annotations: { note: 'x' },
          ownerReferences: [{ apiVersion: 'v1', kind: 'Endpoints', name: 'db', controller: true }],
        },
        ports: PORTS,
        endpoints: [
          { addresses: ['10.0.0.1'], conditions: { ready: true } },
          { addresses: ['10.0.0.2'], conditions: { ready: false }, hostname: 'b', nodeName: 'n1' },
        ],
      },
      { addressType: 'IPv4', ports: [{ name: '', port: 80 }], endpoints: [{ addresses: ['10.0.0.3'] }] },
      { addressType: 'IPv6', ports: PORTS, endpoints: [{ addresses: ['fd00::1'] }] },
    ]);
  });

  it('are mirrored into several slices if they are many', async () => {
    const ips = (third: number) =>
      Array.from({ length: 1_000 }, (_, index) => `10.${third}.${index >> 8}.${index & 255}`);
    const { cluster, slices, addresses } = await withEndpoints([1, 2, 3].map((third) => subset(...ips(third))));
    expect((await addresses()).toSorted()).toEqual([1, 2, 3].flatMap(ips).toSorted());
    expect(await slices()).toHaveLength(8);
    // The sweep finds nothing to write.
    await cluster.tickAfter(900_000);
    const before = cluster.items.changes('objects', 0).length;
    await cluster.tickAfter(900_000);
    expect(cluster.items.changes('objects', 0).length).toBe(before);
  });

  it('fit their slice if they are as large as the API accepts', async () => {
    const nodeName = `n${'x'.repeat(205)}`;
    const all = Array.from({ length: 405 }, (_, index) => ({ ip: `10.0.${index >> 8}.${index & 255}`, nodeName }));
    const { addresses } = await withEndpoints([{ addresses: all, ports: PORTS }]);
    expect(await addresses()).toHaveLength(405);
  });

  it('are followed when they change, in the same slice, and when they are deleted', async () => {
    const { cluster, slices, patch, addresses } = await withEndpoints([subset('10.0.0.1')]);
    const [first] = await slices();
    await patch({ subsets: [subset('10.0.0.9', '10.0.0.8')] });
    expect(await addresses()).toEqual(['10.0.0.9', '10.0.0.8']);
    expect((await slices())[0]?.metadata.uid).toBe(first?.metadata.uid);
    await cluster.ok('DELETE', `${DEFAULT}/endpoints/db`);
    await cluster.settle();
    expect(await slices()).toEqual([]);
  });

  it('are not mirrored with the label that forbids it, nor as the lock of an election', async () => {
    const { patch, addresses } = await withEndpoints([subset('10.0.0.1')], {
      labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    });
    expect(await addresses()).toEqual([]);
    await patch({ metadata: { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'false' } } });
    expect(await addresses()).toEqual(['10.0.0.1']);
    await patch({ metadata: { annotations: { 'control-plane.alpha.kubernetes.io/leader': '{}' } } });
    expect(await addresses()).toEqual([]);
  });

  it('start no function when they are the lock of an election, which is renewed every two seconds', async () => {
    const { cluster, addresses } = await withEndpoints([subset('10.0.0.1')]);
    const renew = (leader: string | null) => {
      const body = { metadata: { annotations: { 'control-plane.alpha.kubernetes.io/leader': leader } } };
      return cluster.api.send('PATCH', `${DEFAULT}/endpoints/db`, { body, contentType: MERGE });
    };
    await renew('{"renewTime":"2026-01-01T00:00:00Z"}');
    expect(await cluster.settle()).toBeGreaterThan(0);
    await renew('{"renewTime":"2026-01-01T00:00:02Z"}');
    expect(await cluster.settle()).toBe(0);
    await renew(null);
    await cluster.settle();
    expect(await addresses()).toEqual(['10.0.0.1']);
  });

  it('pass their labels and annotations on to their slices, also when these are removed', async () => {
    const note = { labels: { team: 'a' }, annotations: { note: 'x' } };
    const { slices, patch } = await withEndpoints([subset('10.0.0.1')], note);
    await patch({ metadata: { labels: { team: null }, annotations: { note: null } } });
    const [slice] = await slices();
    expect(slice?.metadata.annotations).toBeUndefined();
    expect(slice?.metadata.labels).not.toHaveProperty('team');
  });

  it('are mirrored when the Service is created after them, and a deleted slice is created again', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', `${DEFAULT}/endpoints`, { metadata: { name: 'late' }, subsets: [subset('10.0.0.1')] });
    await cluster.settle();
    const names = async () =>
      (
        (await cluster.ok('GET', `${SLICES}?labelSelector=kubernetes.io/service-name=late`))
          .items as KubeEndpointSlice[]
      ).map(({ metadata }) => metadata.name ?? '');
    expect(await names()).toEqual([]);
    await cluster.ok('POST', `${DEFAULT}/services`, { metadata: { name: 'late' }, spec: { ports: [{ port: 5432 }] } });
    await cluster.settle();
    const [name = ''] = await names();
    await cluster.ok('DELETE', `${SLICES}/${name}`);
    await cluster.settle();
    expect(await names()).toHaveLength(1);
  });

  it('are mirrored by the sweep where records were lost, which then writes nothing', async () => {
    const { cluster, addresses, patch } = await withEndpoints([subset('10.0.0.1')]);
    await patch({ subsets: [subset('10.0.0.2')] });
    const body = { subsets: [subset('10.0.0.9')] };
    await cluster.api.send('PATCH', `${DEFAULT}/endpoints/db`, { body, contentType: MERGE });
    cluster.loseRecords();
    expect(await addresses()).toEqual(['10.0.0.2']);
    await cluster.tickAfter(900_000);
    expect(await addresses()).toEqual(['10.0.0.9']);
    const before = cluster.items.changes('objects', 0).length;
    await cluster.tickAfter(900_000);
    expect(cluster.items.changes('objects', 0).length).toBe(before);
  });

  it('are left alone with a selector: their slices have the pods', async () => {
    const { slices } = await withEndpoints([], {}, { selector: { app: 'db' } });
    expect((await slices()).map(({ metadata }) => metadata.ownerReferences?.[0]?.kind)).toEqual(['Service']);
  });

  it('lose their slices when the Service gets a selector', async () => {
    const { slices, patch, addresses } = await withEndpoints([subset('10.0.0.1')]);
    await patch({ spec: { selector: { app: 'db' } } }, 'services');
    expect((await slices()).map(({ metadata }) => metadata.ownerReferences?.[0]?.kind)).toEqual(['Service']);
    expect(await addresses()).toEqual([]);
  });
});
