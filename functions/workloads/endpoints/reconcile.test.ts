import { describe, expect, it } from 'vitest';
import { scriptedCommits } from '../../../test/support/scripted-commits.ts';
import { servedWorkloads } from '../../../test/support/served-workloads.ts';
import { syncEndpoints } from './reconcile.ts';

const DEFAULT = '/api/v1/namespaces/default';
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
const LABELS = { app: 'web' };

type Cluster = ReturnType<typeof servedWorkloads>;

const service = (spec: object = {}, labels: object = {}) => ({
  metadata: { name: 'web', labels },
  spec: { selector: LABELS, ports: [{ name: 'http', port: 80, targetPort: 'http' }], ...spec },
});

async function createPod(cluster: Cluster, name: string, spec: object = {}) {
  const ports = [{ name: 'http', containerPort: 8080 }];
  const body = {
    metadata: { name, labels: LABELS },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i', ports }], ...spec },
  };
  return cluster.ok('POST', `${DEFAULT}/pods`, body);
}

async function report(cluster: Cluster, name: string, ip: string, { ready = true, phase = 'Running' } = {}) {
  const pod = await cluster.ok('GET', `${DEFAULT}/pods/${name}`);
  const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False' }];
  const status = { ...pod.status, phase, podIP: ip, podIPs: [{ ip }], conditions };
  await cluster.ok('PUT', `${DEFAULT}/pods/${name}/status`, { ...pod, status });
}

async function withService(spec: object = {}) {
  const cluster = servedWorkloads();
  await cluster.ok('POST', `${DEFAULT}/services`, service(spec));
  await cluster.settle();
  const endpoints = async () => (await cluster.ok('GET', `${DEFAULT}/endpoints/web`)).subsets;
  const slices = async () =>
    (await cluster.ok('GET', `${SLICES}?labelSelector=kubernetes.io/service-name=web`)).items as {
      metadata: { name: string; labels: object; ownerReferences: object[] };
      addressType: string;
      ports: object[];
      endpoints: { addresses: string[]; conditions: object }[];
    }[];
  return { cluster, endpoints, slices };
}

const PORT = { name: 'http', port: 8080, protocol: 'TCP' };

describe('the endpoints of a Service', () => {
  it('are empty objects until a pod has an address', async () => {
    const { cluster, endpoints, slices } = await withService();
    await createPod(cluster, 'a');
    await cluster.settle();
    expect(await endpoints()).toBeUndefined();
    expect(await slices()).toMatchObject([
      {
        addressType: 'IPv4',
        endpoints: [],
        metadata: {
          labels: { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' },
          ownerReferences: [{ kind: 'Service', name: 'web', controller: true }],
        },
      },
    ]);
  });

  it('have the pods that it selects, by readiness', async () => {
    const { cluster, endpoints, slices } = await withService();
    for (const name of ['a', 'b']) await createPod(cluster, name);
    await cluster.settle();
    await report(cluster, 'a', '10.0.0.1');
    await report(cluster, 'b', '10.0.0.2', { ready: false });
    await cluster.settle();
    const about = (name: string) => ({ nodeName: 'n1', targetRef: expect.objectContaining({ kind: 'Pod', name }) });
    expect(await endpoints()).toEqual([
      {
        addresses: [{ ip: '10.0.0.1', ...about('a') }],
        notReadyAddresses: [{ ip: '10.0.0.2', ...about('b') }],
        ports: [PORT],
      },
    ]);
    const [slice, ...others] = await slices();
    expect(others).toEqual([]);
    expect(slice?.ports).toEqual([PORT]);
    expect(slice?.endpoints).toEqual([
      { addresses: ['10.0.0.1'], conditions: { ready: true, serving: true, terminating: false }, ...about('a') },
      { addresses: ['10.0.0.2'], conditions: { ready: false, serving: false, terminating: false }, ...about('b') },
    ]);
    await report(cluster, 'a', '10.0.0.1', { phase: 'Succeeded' });
    await cluster.settle();
    expect((await endpoints())[0].addresses).toBeUndefined();
  });

  it('lose a pod that terminates; its slice says so', async () => {
    const { cluster, endpoints, slices } = await withService();
    await createPod(cluster, 'a');
    await report(cluster, 'a', '10.0.0.1');
    await cluster.settle();
    await cluster.ok('DELETE', `${DEFAULT}/pods/a`);
    await cluster.settle();
    expect(await endpoints()).toBeUndefined();
    expect((await slices())[0]?.endpoints[0]?.conditions).toEqual({ ready: false, serving: true, terminating: true });
    await cluster.ok('DELETE', `${DEFAULT}/pods/a?gracePeriodSeconds=0`);
    await cluster.settle();
    expect((await slices()).map(({ endpoints: left }) => left)).toEqual([[]]);
  });

  it('are ready at once with publishNotReadyAddresses, and have host names in a headless Service', async () => {
    const { cluster, endpoints } = await withService({ clusterIP: 'None', publishNotReadyAddresses: true, ports: [] });
    await createPod(cluster, 'a', { hostname: 'first', subdomain: 'web' });
    await report(cluster, 'a', '10.0.0.1', { ready: false });
    await cluster.settle();
    expect(await endpoints()).toEqual([
      { addresses: [expect.objectContaining({ ip: '10.0.0.1', hostname: 'first' })] },
    ]);
  });

  it('follow a changed selector, and are removed with the Service', async () => {
    const { cluster, endpoints, slices } = await withService();
    await createPod(cluster, 'a');
    await report(cluster, 'a', '10.0.0.1');
    await cluster.settle();
    const stored = await cluster.ok('GET', `${DEFAULT}/services/web`);
    await cluster.ok('PUT', `${DEFAULT}/services/web`, { ...stored, spec: { ...stored.spec, selector: { app: 'x' } } });
    await cluster.settle();
    expect(await endpoints()).toBeUndefined();
    await cluster.ok('DELETE', `${DEFAULT}/services/web`);
    await cluster.settle();
    expect((await cluster.api.send('GET', `${DEFAULT}/endpoints/web`)).code).toBe(404);
    expect(await slices()).toEqual([]);
  });

  it.each([0, 5_000])(
    'have pods that a changed selector selects, %d ms after a pod without it was seen',
    async (ageMs) => {
      const { cluster, endpoints } = await withService({ selector: { app: 'other' } });
      await createPod(cluster, 'a');
      await cluster.settle();
      await cluster.tickAfter(31_000);
      await report(cluster, 'a', '10.0.0.1');
      await cluster.settle();
      cluster.api.advance(ageMs);
      const stored = await cluster.ok('GET', `${DEFAULT}/services/web`);
      await cluster.ok('PUT', `${DEFAULT}/services/web`, { ...stored, spec: { ...stored.spec, selector: LABELS } });
      await cluster.settle();
      await report(cluster, 'a', '10.0.0.2');
      await cluster.settle();
      expect((await endpoints())?.[0].addresses[0].ip).toBe('10.0.0.2');
    },
  );

  it('are created again after a deletion, and by the sweep where records were lost', async () => {
    const { cluster, endpoints, slices } = await withService();
    await createPod(cluster, 'a');
    await report(cluster, 'a', '10.0.0.1');
    await cluster.settle();
    await cluster.ok('DELETE', `${DEFAULT}/endpoints/web`);
    await cluster.ok('DELETE', `${SLICES}/${(await slices())[0]?.metadata.name}`);
    await cluster.settle();
    expect([(await endpoints()).length, (await slices()).length]).toEqual([1, 1]);
    await report(cluster, 'a', '10.0.0.9');
    cluster.loseRecords();
    await cluster.tickAfter(900_000);
    expect((await endpoints())[0].addresses[0].ip).toBe('10.0.0.9');
  });

  it('of a Service without a selector stay as they were sent', async () => {
    const { cluster } = await withService({ selector: undefined, ports: [{ port: 80 }] });
    const sent = { metadata: { name: 'web' }, subsets: [{ addresses: [{ ip: '192.0.2.1' }], ports: [{ port: 80 }] }] };
    await cluster.ok('POST', `${DEFAULT}/endpoints`, sent);
    await createPod(cluster, 'a');
    await report(cluster, 'a', '10.0.0.1');
    await cluster.settle();
    await cluster.tickAfter(900_000);
    expect((await cluster.ok('GET', `${DEFAULT}/endpoints/web`)).subsets[0].addresses).toEqual([{ ip: '192.0.2.1' }]);
  });

  it('have at most 100 addresses per slice, and keep the slice of an address', async () => {
    const { cluster, slices } = await withService();
    const add = async (count: number, from: number) => {
      for (let index = from; index < from + count; index += 1) {
        await createPod(cluster, `p${1000 + index}`);
        await report(cluster, `p${1000 + index}`, `10.0.${Math.floor(index / 200)}.${index % 200}`);
      }
      await cluster.settle();
    };
    await add(101, 0);
    const sizes = async () => (await slices()).map(({ endpoints }) => endpoints.length).toSorted((a, b) => b - a);
    expect(await sizes()).toEqual([100, 1]);
    const full = (await slices()).find(({ endpoints }) => endpoints.length === 100)!;
    await cluster.ok('DELETE', `${DEFAULT}/pods/p1000?gracePeriodSeconds=0`);
    await cluster.settle();
    const after = (await slices()).find(({ metadata }) => metadata.name === full.metadata.name);
    expect(after?.endpoints.map(({ addresses }) => addresses)).toEqual(
      full.endpoints.map(({ addresses }) => addresses).filter(([ip]) => ip !== '10.0.0.0'),
    );
    expect(await sizes()).toEqual([99, 1]);
  });

  it('cost nothing once they are right', async () => {
    const { cluster } = await withService();
    await createPod(cluster, 'a');
    await report(cluster, 'a', '10.0.0.1');
    await cluster.settle();
    const before = cluster.items.changes('objects', 0).length;
    await cluster.tickAfter(900_000);
    expect(cluster.items.changes('objects', 0).length).toBe(before);
  });
});

it('endpoints that are too large, as with many labels of the Service, are given up at once', async () => {
  const ref = { resource: 'services', namespace: 'default', name: 'web' };
  const stored = { ...service(), metadata: { ...ref, uid: 'u', resourceVersion: '1' } };
  const { objects, commits } = scriptedCommits([{ kind: 'tooLarge', index: 0 }], ({ resource }) =>
    resource === 'services' ? stored : undefined,
  );
  const [services, nodeZones] = [{ forget: () => {} }, { of: async () => new Map() }];
  const random = { uuid: () => 'e', next: () => 0.5 };
  const dependencies = { objects, clock: { nowMs: () => 0 }, random, services, nodeZones };
  const outcome = await syncEndpoints(dependencies as never, ref).catch((fault: unknown) => fault);
  expect([outcome, commits.length]).toEqual([expect.objectContaining({ code: 'too-large', retryable: false }), 1]);
});
