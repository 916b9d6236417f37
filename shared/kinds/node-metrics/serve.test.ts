import { describe, expect, it } from 'vitest';
import { apiInMemory, TABLE } from '../../../test/support/api-in-memory.ts';

const PATH = '/apis/metrics.k8s.io/v1beta1';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

async function clusterOf(usages: Readonly<Record<string, string | undefined>>) {
  const api = apiInMemory();
  for (const [name, usage] of Object.entries(usages)) {
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { site: name[0] } } };
    expect((await api.send('POST', '/api/v1/nodes', { body })).code).toBe(201);
    const annotations = usage === undefined ? undefined : { 'nodekeeper.dev/usage': usage };
    const lease = { metadata: { name, annotations }, spec: { holderIdentity: name } };
    expect((await api.send('POST', LEASES, { body: lease })).code).toBe(201);
  }
  return api;
}

describe('metrics of nodes', () => {
  it('are what agents report in their Leases', async () => {
    const api = await clusterOf({ a1: '0.250 1073741824 70 1', a2: undefined, a3: 'none', b1: '3.000 2048 60 1' });
    const { body } = await api.send('GET', `${PATH}/nodes`);
    expect(body).toMatchObject({ kind: 'NodeMetricsList', apiVersion: 'metrics.k8s.io/v1beta1' });
    expect(body.items).toMatchObject([
      {
        metadata: { name: 'a1', labels: { site: 'a' } },
        timestamp: '2026-01-01T00:00:00Z',
        window: '1m10s',
        usage: { cpu: '250000000n', memory: '1048576Ki' },
      },
      { metadata: { name: 'b1' }, window: '1m0s', usage: { cpu: '3000000000n', memory: '2Ki' } },
    ]);
    const ofSite = await api.send('GET', `${PATH}/nodes?labelSelector=site%3Db`, { accept: TABLE });
    expect(ofSite.body.rows.map(({ cells }: { cells: unknown[] }) => cells)).toEqual([
      ['b1', '3000000000n', '2Ki', '1m0s'],
    ]);
    expect((await api.send('GET', `${PATH}/nodes/a1`)).body).toMatchObject({ kind: 'NodeMetrics', window: '1m10s' });
  });

  it('are absent for a node that was silent for two minutes, and cannot be written', async () => {
    const api = await clusterOf({ a1: '0.250 1024 60 1' });
    api.advance(120_001);
    expect((await api.send('GET', `${PATH}/nodes`)).body.items).toEqual([]);
    expect((await api.send('GET', `${PATH}/nodes/a1`)).code).toBe(404);
    expect((await api.send('POST', `${PATH}/nodes`, { body: {} })).code).toBe(405);
    expect((await api.send('GET', `${PATH}/pods`)).body.items).toEqual([]);
    expect((await api.send('GET', `${PATH}/namespaces/default/pods/p`)).code).toBe(404);
  });

  it('leave the nodes themselves as they are', async () => {
    const api = await clusterOf({ a1: '0.250 1024 60 1' });
    expect((await api.send('GET', '/api/v1/nodes/a1')).body).toMatchObject({ metadata: { name: 'a1' } });
    expect((await api.send('GET', '/api/v1/nodes')).body.kind).toBe('NodeList');
  });
});
