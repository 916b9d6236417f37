/** SitePolicies, and the hub that a binding writes into a pod, through the API. */
import { describe, expect, it } from 'vitest';
import { apiInMemory } from '../../test/support/api-in-memory.ts';

const POLICIES = '/apis/nodekeeper.dev/v1alpha1/sitepolicies';
const PODS = '/api/v1/namespaces/default/pods';
const HUB = 'system:serviceaccount:kube-system:hub';
const SITE_HUB = 'nodekeeper.dev/site-hub';
const policy = (spec: object = {}) => ({
  metadata: { name: 'munich' },
  spec: { hub: HUB, nodes: ['m1', 'm2'], namespaces: ['default'], ...spec },
});
const pod = (annotations: Record<string, string> = {}) => ({
  metadata: { name: 'p', annotations: { 'nodekeeper.dev/offline-stop-after': '1h', ...annotations } },
  spec: { containers: [{ name: 'c', image: 'i' }] },
});
const binding = (nodeName: string, annotations?: object) => ({
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name: 'p', annotations },
  target: { kind: 'Node', name: nodeName },
});

describe('a SitePolicy', () => {
  it('is stored, and shown', async () => {
    const api = apiInMemory();
    expect((await api.send('POST', POLICIES, { body: policy() })).code).toBe(201);
    expect((await api.send('GET', `${POLICIES}/munich`)).body.spec).toEqual(policy().spec);
  });

  it.each([
    [{ hub: '' }, 'spec.hub'],
    [{ nodes: [] }, 'spec.nodes'],
    [{ namespaces: ['Plant'] }, 'spec.namespaces[0]'],
    [{ nodes: ['m1', 'm1'] }, 'spec.nodes[1]'],
  ])('is refused with %j', async (spec, field) => {
    const { code, body } = await apiInMemory().send('POST', POLICIES, { body: policy(spec) });
    expect(code).toBe(422);
    expect(body.details.causes).toMatchObject([{ field }]);
  });
});

describe('the hub of a pod', () => {
  async function bound(nodeName: string) {
    const api = apiInMemory();
    await api.send('POST', POLICIES, { body: policy() });
    for (const name of ['m1', 'm2', 'm3']) {
      const annotations = name === 'm2' ? {} : { [SITE_HUB]: HUB };
      await api.send('POST', '/api/v1/nodes', { body: { metadata: { name, annotations } } });
    }
    expect((await api.send('POST', PODS, { body: pod() })).code).toBe(201);
    expect((await api.send('POST', `${PODS}/p/binding`, { body: binding(nodeName) })).code).toBe(201);
    return api;
  }

  it('is written by the binding to a node of the policy that obeys it', async () => {
    const { body } = await (await bound('m1')).send('GET', `${PODS}/p`);
    expect(body.metadata.annotations[SITE_HUB]).toBe(HUB);
  });

  it.each(['m2', 'm3', 'm4'])(
    'is not written on %s, which obeys none, is in no policy, or does not exist',
    async (name) => {
      const { body } = await (await bound(name)).send('GET', `${PODS}/p`);
      expect(body.metadata.annotations[SITE_HUB]).toBeUndefined();
    },
  );

  it.each([['another'], [null]])('is not changed by anybody: %j', async (value) => {
    const api = await bound('m1');
    const type = 'application/merge-patch+json';
    const body = { metadata: { annotations: { [SITE_HUB]: value } } };
    expect((await api.send('PATCH', `${PODS}/p`, { body, contentType: type })).code).toBe(422);
    expect(
      (await api.send('PATCH', `${PODS}/p`, { body: { metadata: { labels: { a: 'b' } } }, contentType: type })).code,
    ).toBe(200);
    await api.send('DELETE', `${POLICIES}/munich`);
    expect((await api.send('GET', `${PODS}/p`)).body.metadata.annotations[SITE_HUB]).toBe(HUB);
  });

  it('is refused from a client, in a pod, a template and a binding', async () => {
    const api = apiInMemory();
    expect((await api.send('POST', PODS, { body: pod({ [SITE_HUB]: HUB }) })).code).toBe(422);
    await api.send('POST', PODS, { body: pod() });
    const { code } = await api.send('POST', `${PODS}/p/binding`, { body: binding('m1', { [SITE_HUB]: HUB }) });
    expect(code).toBe(422);
    const template = {
      ...pod({ [SITE_HUB]: HUB }),
      metadata: { labels: { a: 'b' }, annotations: { [SITE_HUB]: HUB } },
    };
    const body = {
      metadata: { name: 'w' },
      spec: { selector: { matchLabels: { a: 'b' } }, template },
    };
    expect((await api.send('POST', '/apis/apps/v1/namespaces/default/deployments', { body })).code).toBe(422);
  });
});
