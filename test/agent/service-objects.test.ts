/** Services from the API and the controllers to the copy of an agent. */
import { describe, expect, it } from 'vitest';
import { readServiceObjects, type ServiceObjects } from '../../agent/app/services/read-service-objects.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../../agent/ports/kube-api.ts';
import { SERVICES_ANNOTATION } from '../../shared/fleet/nodes/service-readers.ts';
import { healthKey } from '../../shared/store/layout.ts';
import { servedWorkloads } from '../support/served-workloads.ts';

const NAMESPACE = '/api/v1/namespaces/default';
const LABELS = { app: 'web' };
const USER = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };

async function clusterWithAgent() {
  const cluster = servedWorkloads({ users: { 'token-n1': USER } });
  const sent: { readonly request: KubeRequest; readonly bytes: number }[] = [];
  let between: (request: KubeRequest, answer: KubeAnswer) => KubeAnswer = (_request, answer) => answer;
  const api: KubeApi = {
    async send(request) {
      const { method, path, body } = request;
      const headers = { authorization: 'Bearer token-n1' };
      const answer = await cluster.api.send(method, path, { ...(body !== undefined && { body }), headers });
      sent.push({ request, bytes: answer.text.length });
      return between(request, { kind: 'answered', status: answer.code, body: answer.body as unknown });
    },
    reconnect() {},
  };
  let known: ServiceObjects | undefined;
  let seen = 0;
  const annotations = { [SERVICES_ANNOTATION]: 'nftables' };
  await cluster.ok('POST', '/api/v1/nodes', { metadata: { name: 'n1', annotations } });
  const read = async () => {
    const outcome = await readServiceObjects(api, known);
    if (outcome.kind === 'failed') throw new Error(outcome.why);
    known = outcome.objects;
    return outcome;
  };
  return {
    ...cluster,
    sent,
    agentApi: api,
    intercept(with_: typeof between) {
      between = with_;
    },
    known: () => known!,
    read,
    async settle() {
      await cluster.settle();
      const changes = cluster.items.changes('objects', seen);
      seen = changes.at(-1)?.sequence ?? seen;
      await cluster.controllers.onObjectRecords(changes.filter(({ key }) => key.pk.startsWith('o#nodes#')));
    },
    /** What the answer to a heartbeat would have. */
    version: async () => (await cluster.items.get(healthKey('n1'), { consistent: true }))?.['E'],
    async pod(name: string, ip: string, labels: object = LABELS) {
      const body = {
        metadata: { name, labels },
        spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
      };
      const pod = await cluster.ok('POST', `${NAMESPACE}/pods`, body);
      const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] };
      await cluster.ok('PUT', `${NAMESPACE}/pods/${name}/status`, { ...pod, status });
    },
    service: (name: string, selector: object = LABELS) =>
      cluster.ok('POST', `${NAMESPACE}/services`, {
        metadata: { name },
        spec: { selector, ports: [{ port: 80 }] },
      }),
    endpoints: () =>
      (known?.endpointSlices ?? []).flatMap(({ metadata, endpoints = [] }) =>
        endpoints.map(({ addresses = [] }) => `${metadata.labels?.['kubernetes.io/service-name']} ${addresses[0]}`),
      ),
  };
}

type Cluster = Awaited<ReturnType<typeof clusterWithAgent>>;

/** The copy is what a list has now. */
async function expectWhole(cluster: Cluster): Promise<void> {
  const listed = async (path: string) => (await cluster.ok('GET', path)).items.map(versionIn).sort();
  const versionIn = ({ metadata }: { metadata: { name?: string; resourceVersion?: string } }) =>
    `${metadata.name} ${metadata.resourceVersion}`;
  const { services, endpointSlices, networkPolicies } = cluster.known();
  expect(services.map(versionIn).sort()).toEqual(await listed('/api/v1/services'));
  expect(endpointSlices.map(versionIn).sort()).toEqual(await listed('/apis/discovery.k8s.io/v1/endpointslices'));
  expect(networkPolicies.map(versionIn).sort()).toEqual(await listed('/apis/networking.k8s.io/v1/networkpolicies'));
}

describe('an agent that routes Services', () => {
  it('is notified of a change, reads it as a change, and then has what the cluster has', async () => {
    const cluster = await clusterWithAgent();
    await cluster.settle();
    await cluster.read();
    const before = await cluster.version();
    await cluster.service('web');
    await cluster.pod('a', '10.0.0.1');
    await cluster.settle();
    expect(await cluster.version()).not.toBe(before);
    cluster.sent.splice(0);
    expect((await cluster.read()).isChanged).toBe(true);
    expect(cluster.sent.map(({ request }) => request.method)).toEqual(['POST']);
    expect(cluster.endpoints()).toContain('web 10.0.0.1');
    await expectWhole(cluster);
    await cluster.ok('DELETE', `${NAMESPACE}/services/web`);
    await cluster.settle();
    await cluster.read();
    await expectWhole(cluster);
    expect((await cluster.read()).isChanged).toBe(false);
  });

  it('reads a small part of the whole after a change of one pod among many Services', async () => {
    const cluster = await clusterWithAgent();
    for (let index = 0; index < 20; index += 1) {
      await cluster.service(`web-${index}`, { app: `web-${index}` });
      for (const pod of [0, 1, 2])
        await cluster.pod(`p${index}-${pod}`, `10.0.${index}.${pod}`, { app: `web-${index}` });
    }
    await cluster.settle();
    await cluster.read();
    const whole = cluster.sent.splice(0).reduce((sum, { bytes }) => sum + bytes, 0);
    await cluster.ok('DELETE', `${NAMESPACE}/pods/p3-1`);
    await cluster.settle();
    expect((await cluster.read()).isChanged).toBe(true);
    const change = cluster.sent.reduce((sum, { bytes }) => sum + bytes, 0);
    expect(change).toBeLessThan(whole / 10);
    await expectWhole(cluster);
  });

  it('lists again what has expired', async () => {
    const cluster = await clusterWithAgent();
    await cluster.service('web');
    await cluster.settle();
    await cluster.read();
    cluster.api.advance(2 * 3_600_000);
    await cluster.service('other');
    await cluster.settle();
    cluster.sent.splice(0);
    await cluster.read();
    expect(cluster.sent.map(({ request: { method, path } }) => `${method} ${path.split('/').at(-1)}`)).toContain(
      'GET services?limit=250',
    );
    await expectWhole(cluster);
  });

  it('lists everything again from a store with another history, and after the loss of its own copy', async () => {
    const cluster = await clusterWithAgent();
    await cluster.service('web');
    await cluster.settle();
    await cluster.read();
    const restored: ServiceObjects = { ...cluster.known(), services: [], history: 'another' };
    const outcome = await readServiceObjects(cluster.agentApi, restored);
    if (outcome.kind !== 'read') throw new Error(outcome.why);
    expect(outcome).toMatchObject({ isChanged: true, objects: { history: cluster.known().history } });
    expect(outcome.objects.services).toHaveLength(cluster.known().services.length);
  });

  it('keeps the whole copy when a read fails half-way, and returns why', async () => {
    const cluster = await clusterWithAgent();
    await cluster.read();
    await cluster.service('web');
    await cluster.settle();
    const known = cluster.known();
    cluster.intercept(({ method }, answer) =>
      method === 'POST' ? { kind: 'answered', status: 503, body: { message: 'later' } } : answer,
    );
    expect(await readServiceObjects(cluster.agentApi, known)).toEqual({ kind: 'failed', why: '503 later' });
    cluster.intercept(() => ({ kind: 'answered', status: 200, body: '<html>' }));
    expect(await readServiceObjects(cluster.agentApi, undefined)).toMatchObject({ kind: 'failed' });
    cluster.intercept((_request, answer) => answer);
    await cluster.read();
    await expectWhole(cluster);
  });

  it('follows no Secrets, ConfigMaps or Nodes in this way, and no whole pods', async () => {
    const cluster = await clusterWithAgent();
    await cluster.pod('a', '10.0.0.1');
    const resources = ['secrets', 'configmaps', 'nodes'].map((resource) => ({
      group: '',
      resource,
      after: '0',
    }));
    const answer = await cluster.agentApi.send({
      method: 'POST',
      path: '/apis/nodekeeper.dev/v1alpha1/changereads',
      body: { spec: { resources } },
    });
    const { status } = (answer as { body: { status: { resources: { outcome: string }[] } } }).body;
    expect(status.resources.map(({ outcome }) => outcome)).toEqual(Array(3).fill('forbidden'));
  });

  it('reads of pods and namespaces what policies are about, and only while there are policies', async () => {
    const cluster = await clusterWithAgent();
    await cluster.pod('a', '10.0.0.1');
    await cluster.pod('b', '10.0.0.2');
    await cluster.settle();
    expect((await cluster.read()).objects.pods).toBeUndefined();
    const policies = '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies';
    await cluster.ok('POST', policies, { metadata: { name: 'deny' }, spec: { podSelector: {} } });
    await cluster.settle();
    const { objects } = await cluster.read();
    expect(objects.namespaces?.map(({ metadata }) => metadata.name)).toContain('default');
    expect(objects.pods).toEqual(
      ['a', 'b'].map((name, index) => ({
        metadata: {
          namespace: 'default',
          name,
          uid: expect.any(String),
          labels: LABELS,
          resourceVersion: expect.any(String),
        },
        spec: { nodeName: 'n1', containers: [] },
        status: { phase: 'Running', podIP: `10.0.0.${index + 1}`, podIPs: [{ ip: `10.0.0.${index + 1}` }] },
      })),
    );
    // The list created the namespaces of each cluster.
    await cluster.settle();
    // A change of labels is news, one of the status is not.
    const version = await cluster.version();
    cluster.api.advance(20_000);
    const status = { conditions: [{ type: 'Ready', status: 'False' }] };
    const pod = await cluster.ok('GET', `${NAMESPACE}/pods/a`);
    await cluster.ok('PUT', `${NAMESPACE}/pods/a/status`, { ...pod, status: { ...pod.status, ...status } });
    await cluster.settle();
    expect(await cluster.version()).toBe(version);
    expect((await cluster.read()).isChanged).toBe(false);
    const changed = await cluster.ok('GET', `${NAMESPACE}/pods/a`);
    await cluster.ok('PUT', `${NAMESPACE}/pods/a`, {
      ...changed,
      metadata: { ...changed.metadata, labels: { app: 'x' } },
    });
    await cluster.settle();
    expect(await cluster.version()).not.toBe(version);
    const again = await cluster.read();
    expect(again.isChanged).toBe(true);
    expect(again.objects.pods?.find(({ metadata }) => metadata.name === 'a')?.metadata.labels).toEqual({ app: 'x' });
    await cluster.ok('DELETE', `${NAMESPACE}/pods/b?gracePeriodSeconds=0`);
    await cluster.settle();
    expect((await cluster.read()).objects.pods?.map(({ metadata }) => metadata.name)).toEqual(['a']);
    await cluster.ok('DELETE', `${policies}/deny`);
    await cluster.settle();
    expect((await cluster.read()).objects).not.toHaveProperty('pods');
  });
});
