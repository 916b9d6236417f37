import { describe, expect, it } from 'vitest';
import { apiInMemory, MERGE } from '../../../test/support/api-in-memory.ts';

const SERVICES = '/api/v1/namespaces/default/services';
const ports = [{ port: 80, nodePort: 30_080 }];

describe('a Service with a new type', () => {
  it.each([
    ['LoadBalancer', 'ClusterIP'],
    ['NodePort', 'ClusterIP'],
    ['LoadBalancer', 'ExternalName'],
  ])('from %s to %s loses the fields of its old type that the client left as they were', async (from, to) => {
    const api = apiInMemory();
    const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: { type: from, ports } };
    expect((await api.send('POST', SERVICES, { body })).code).toBe(201);
    const spec = { type: to, externalName: 'example.com' };
    const { code, body: changed } = await api.send('PATCH', `${SERVICES}/s`, { contentType: MERGE, body: { spec } });
    expect(code).toBe(200);
    expect(changed.spec.ports).toEqual([{ port: 80, protocol: 'TCP', targetPort: 80 }]);
    expect(changed.spec).not.toHaveProperty('externalTrafficPolicy');
    expect(changed.spec).not.toHaveProperty('allocateLoadBalancerNodePorts');
    expect('clusterIP' in changed.spec).toBe(to === 'ClusterIP');
  });

  it('is refused with a field of its old type that the client changes', async () => {
    const api = apiInMemory();
    const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: { type: 'NodePort', ports } };
    await api.send('POST', SERVICES, { body });
    const spec = { type: 'ClusterIP', externalTrafficPolicy: 'Local' };
    const { code, body: refused } = await api.send('PATCH', `${SERVICES}/s`, { contentType: MERGE, body: { spec } });
    expect(code).toBe(422);
    expect(refused.details.causes[0]).toMatchObject({ field: 'spec.externalTrafficPolicy' });
  });
});
