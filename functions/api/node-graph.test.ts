import { describe, expect, it } from 'vitest';
import { type ApiInMemory, apiInMemory, pod, podsIn } from '../../test/support/api-in-memory.ts';

const USERS = {
  n1: { name: 'system:node:n1', groups: ['system:nodes'] },
  n2: { name: 'system:node:n2', groups: ['system:nodes'] },
  viewer: { name: 'vera', groups: ['nodekeeper:viewers'] },
  both: { name: 'system:node:n2', groups: ['system:nodes', 'nodekeeper:viewers'] },
} as const;
type Who = keyof typeof USERS;

const SECRETS = '/api/v1/namespaces/default/secrets';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const VOLUMES = '/api/v1/persistentvolumes';

const as = (who: Who) => ({ headers: { authorization: `Bearer ${who}` } });
const code = async (api: ApiInMemory, who: Who, path: string, method = 'GET') =>
  (await api.send(method, path, as(who))).code;

/** A Secret, a ConfigMap and a claim with its volume, and a pod on n1 that refers to them. */
async function world(): Promise<ApiInMemory> {
  const api = apiInMemory({ users: { ...USERS } });
  const storage = { resources: { requests: { storage: '1Gi' } }, accessModes: ['ReadWriteOnce'] };
  const created = [
    await api.send('POST', SECRETS, { body: { metadata: { name: 's' }, stringData: { key: 'value' } } }),
    await api.send('POST', SECRETS, { body: { metadata: { name: 'other' } } }),
    await api.send('POST', CONFIG_MAPS, { body: { metadata: { name: 'c' }, data: { key: 'value' } } }),
    await api.send('POST', CLAIMS, { body: { metadata: { name: 'd' }, spec: { ...storage, volumeName: 'v' } } }),
    await api.send('POST', VOLUMES, {
      body: {
        metadata: { name: 'v' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '1Gi' },
          claimRef: { namespace: 'default', name: 'd' },
          hostPath: { path: '/v' },
        },
      },
    }),
    await api.send('POST', podsIn('default'), {
      body: pod('p', {
        spec: {
          nodeName: 'n1',
          containers: [{ name: 'c', image: 'i' }],
          volumes: [
            { name: 's', secret: { secretName: 's' } },
            { name: 'c', configMap: { name: 'c' } },
            { name: 'd', persistentVolumeClaim: { claimName: 'd' } },
          ],
        },
      }),
    }),
  ];
  expect(created.map((answer) => answer.code)).toEqual(created.map(() => 201));
  return api;
}

describe('a node', () => {
  it.each([`${SECRETS}/s`, `${CONFIG_MAPS}/c`, `${CLAIMS}/d`, `${VOLUMES}/v`])(
    'reads %s because its pod refers to it; another node does not',
    async (path) => {
      const api = await world();
      expect(await code(api, 'n1', path)).toBe(200);
      expect(await api.send('GET', path, as('n2'))).toMatchObject({
        code: 403,
        body: { message: expect.stringMatching(/: no relationship found between node 'n2' and this object$/) },
      });
    },
  );

  it('reads nothing else, and learns nothing of what exists', async () => {
    const api = await world();
    expect(await code(api, 'n1', `${SECRETS}/other`)).toBe(403);
    expect(await code(api, 'n1', `${SECRETS}/absent`)).toBe(403);
    expect(await code(api, 'n1', `${VOLUMES}/absent`)).toBe(403);
  });

  it('lists and watches one named object only', async () => {
    const api = await world();
    const named = `${SECRETS}?fieldSelector=metadata.name%3Ds`;
    expect(await code(api, 'n1', named)).toBe(200);
    expect(await code(api, 'n1', `${named}&watch=1&timeoutSeconds=1`)).toBe(200);
    expect(await code(api, 'n2', named)).toBe(403);
    expect(await code(api, 'n2', `${named}&watch=1&timeoutSeconds=1`)).toBe(403);
    expect(await api.send('GET', SECRETS, as('n1'))).toMatchObject({
      code: 403,
      body: { message: expect.stringMatching(/: No Object name found$/) },
    });
    expect(await code(api, 'n1', '/api/v1/secrets?fieldSelector=metadata.name%3Ds')).toBe(403);
    expect(await code(api, 'n1', `${SECRETS}?fieldSelector=metadata.name!%3Dx`)).toBe(403);
  });

  it('writes none of them', async () => {
    const api = await world();
    expect(await api.send('DELETE', `${SECRETS}/s`, as('n1'))).toMatchObject({
      code: 403,
      body: { message: expect.stringMatching(/: can only read resources of this type$/) },
    });
    expect(await api.send('POST', SECRETS, { ...as('n1'), body: { metadata: { name: 'x' } } })).toMatchObject({
      code: 403,
    });
  });

  it('reads the Secret of a pod that was bound a moment ago, and not for long after the pod is deleted', async () => {
    const api = await world();
    expect(await code(api, 'n2', `${SECRETS}/s`)).toBe(403);
    await api.send('POST', podsIn('default'), {
      body: pod('q', {
        spec: { nodeName: 'n2', containers: [{ name: 'c', image: 'i' }], imagePullSecrets: [{ name: 's' }] },
      }),
    });
    expect(await code(api, 'n2', `${SECRETS}/s`)).toBe(200);
    await api.send('DELETE', `${podsIn('default')}/q?gracePeriodSeconds=0`);
    api.advance(5_000);
    expect(await code(api, 'n2', `${SECRETS}/s`)).toBe(403);
  });

  it('gains nothing by a mirror pod that names a Secret', async () => {
    const api = await world();
    const { body: node } = await api.send('POST', '/api/v1/nodes', { body: { metadata: { name: 'n2' } } });
    const owner = { apiVersion: 'v1', kind: 'Node', name: 'n2', uid: node.metadata.uid, controller: true };
    const mirror = pod('static-n2', {
      metadata: { annotations: { 'kubernetes.io/config.mirror': 'hash' }, ownerReferences: [owner] },
      spec: { nodeName: 'n2', containers: [{ name: 'c', image: 'i' }], imagePullSecrets: [{ name: 's' }] },
    });
    expect(await api.send('POST', podsIn('default'), { ...as('n2'), body: mirror })).toMatchObject({ code: 403 });
    expect(await api.send('POST', podsIn('default'), { body: mirror })).toMatchObject({
      code: 403,
      body: { message: 'pods "static-n2" is forbidden: a mirror pod may not reference secrets' },
    });
    expect(await code(api, 'n2', `${SECRETS}/s`)).toBe(403);
  });
});

describe('a viewer', () => {
  it('reads everything but Secrets', async () => {
    const api = await world();
    expect(await code(api, 'viewer', `${CONFIG_MAPS}/c`)).toBe(200);
    expect(await code(api, 'viewer', CONFIG_MAPS)).toBe(200);
    for (const path of [`${SECRETS}/s`, SECRETS, '/api/v1/secrets', `${SECRETS}?watch=1&timeoutSeconds=1`]) {
      expect(await code(api, 'viewer', path), path).toBe(403);
    }
  });

  it('that is a node too reads the Secrets of that node only', async () => {
    const api = await world();
    expect(await code(api, 'both', `${CONFIG_MAPS}/c`)).toBe(200);
    expect(await code(api, 'both', `${SECRETS}/s`)).toBe(403);
  });
});
