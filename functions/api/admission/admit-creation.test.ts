import { describe, expect, it } from 'vitest';
import { type ApiInMemory, apiInMemory, MERGE } from '../../../test/support/api-in-memory.ts';

const CLASSES = '/apis/scheduling.k8s.io/v1/priorityclasses';
const inNamespace = (namespace: string, resource: string) => `/api/v1/namespaces/${namespace}/${resource}`;
const config = (more: object = {}) => ({ metadata: { name: 'c' }, ...more });
const pod = (spec: object = {}) => ({
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
});
const post = (api: ApiInMemory, path: string, body: object) => api.send('POST', path, { body });
const outcome = async (sent: ReturnType<ApiInMemory['send']>) => {
  const { code, body } = await sent;
  return [code, body.message];
};

describe('the namespace of a new object', () => {
  it('must exist; those of the system do, and an object of the cluster needs none', async () => {
    const api = apiInMemory();
    expect(await outcome(post(api, inNamespace('none', 'configmaps'), config()))).toEqual([
      404,
      'namespaces "none" not found',
    ]);
    for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
      expect((await post(api, inNamespace(name, 'configmaps'), config())).code).toBe(201);
    expect((await post(api, '/api/v1/nodes', { metadata: { name: 'n1' } })).code).toBe(201);
  });

  it('must not be terminating, and what is in it may still be changed', async () => {
    const api = apiInMemory();
    await post(api, '/api/v1/namespaces', { metadata: { name: 'a' } });
    const maps = inNamespace('a', 'configmaps');
    expect((await post(api, maps, config())).code).toBe(201);
    expect((await api.send('DELETE', '/api/v1/namespaces/a')).body.status.phase).toBe('Terminating');
    const refused = await post(api, maps, { metadata: { name: 'd' } });
    expect(refused).toMatchObject({
      code: 403,
      body: {
        message:
          'configmaps "d" is forbidden: unable to create new content in namespace a because it is being terminated',
        details: {
          causes: [
            {
              reason: 'NamespaceTerminating',
              message: 'namespace a is being terminated',
              field: 'metadata.namespace',
            },
          ],
        },
      },
    });
    const data = { body: { data: { x: 'y' } }, contentType: MERGE };
    expect((await api.send('PATCH', `${maps}/c`, data)).code).toBe(200);
    expect((await post(api, `${maps}?dryRun=All`, { metadata: { name: 'd' } })).code).toBe(403);
  });
});

describe('a new pod', () => {
  it('has an account: the default one exists, another one must', async () => {
    const api = apiInMemory();
    const { code, body } = await post(api, inNamespace('default', 'pods'), pod());
    expect([code, body.spec.serviceAccountName]).toEqual([201, 'default']);
    expect((await api.send('GET', `${inNamespace('default', 'serviceaccounts')}/default`)).code).toBe(200);
    expect(await outcome(post(api, inNamespace('default', 'pods'), pod({ serviceAccountName: 'none' })))).toEqual([
      403,
      'pods "p" is forbidden: error looking up service account default/none: serviceaccount "none" not found',
    ]);
  });

  it('that is a mirror of a machine names no account, and refers to none', async () => {
    const mirror = (spec: object) => ({
      ...pod({ nodeName: 'n1', ...spec }),
      metadata: { name: 'p', annotations: { 'kubernetes.io/config.mirror': 'x' } },
    });
    const api = apiInMemory();
    expect((await post(api, inNamespace('default', 'pods'), mirror({ serviceAccountName: 'x' }))).code).toBe(403);
    const { code, body } = await post(api, inNamespace('default', 'pods'), mirror({}));
    expect([code, body.spec.serviceAccountName]).toEqual([201, undefined]);
  });

  it('has the image pull secrets of its account, and mounts a token as that says', async () => {
    const api = apiInMemory();
    await post(api, inNamespace('default', 'serviceaccounts'), {
      metadata: { name: 'bot' },
      imagePullSecrets: [{ name: 's' }],
      automountServiceAccountToken: false,
    });
    const { body } = await post(api, inNamespace('default', 'pods'), pod({ serviceAccountName: 'bot' }));
    expect(body.spec.imagePullSecrets).toEqual([{ name: 's' }]);
    expect(body.spec.volumes ?? []).toEqual([]);
  });

  it('has the priority of its class, of the default class, or none', async () => {
    const api = apiInMemory();
    const made = async (spec: object, name: string) => {
      const { code, body } = await post(api, inNamespace('default', 'pods'), { ...pod(spec), metadata: { name } });
      return code === 201 ? [body.spec.priority, body.spec.priorityClassName] : [code, body.message];
    };
    expect(await made({}, 'a')).toEqual([0, undefined]);
    await post(api, CLASSES, { metadata: { name: 'low' }, value: 7 });
    expect(await made({}, 'b')).toEqual([0, undefined]);
    await post(api, CLASSES, { metadata: { name: 'usual' }, value: 9, globalDefault: true });
    expect(await made({}, 'c')).toEqual([9, 'usual']);
    expect(await made({ priorityClassName: 'low' }, 'd')).toEqual([7, 'low']);
    expect(await made({ priorityClassName: 'system-node-critical' }, 'e')).toEqual([
      2_000_001_000,
      'system-node-critical',
    ]);
    expect(await made({ priorityClassName: 'none' }, 'f')).toEqual([403, expect.stringContaining('name none')]);
    expect(await made({ priority: 8 }, 'g')).toEqual([403, expect.stringContaining('priority')]);
  });

  it('is bounded by the LimitRanges of its own namespace, with its defaults', async () => {
    const api = apiInMemory();
    await post(api, '/api/v1/namespaces', { metadata: { name: 'a' } });
    const limits = [{ type: 'Container', max: { cpu: '1' }, default: { cpu: '500m' } }];
    await post(api, inNamespace('default', 'limitranges'), { metadata: { name: 'l' }, spec: { limits } });
    const large = pod({ containers: [{ name: 'c', image: 'i', resources: { limits: { cpu: '2' } } }] });
    expect(await outcome(post(api, inNamespace('default', 'pods'), large))).toEqual([
      403,
      'pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
    ]);
    expect((await post(api, inNamespace('a', 'pods'), large)).code).toBe(201);
    const { code, body } = await post(api, inNamespace('default', 'pods'), pod());
    expect([code, body.spec.containers[0].resources.limits]).toEqual([201, { cpu: '500m' }]);
    // No LimitRange is about a ConfigMap.
    expect((await post(api, inNamespace('default', 'configmaps'), config())).code).toBe(201);
  });
});

describe('a PriorityClass', () => {
  const usual = (name: string, more: object = {}) => ({ metadata: { name }, value: 9, globalDefault: true, ...more });

  it('that is the default is one; it may itself be changed', async () => {
    const api = apiInMemory();
    expect((await post(api, CLASSES, usual('one'))).code).toBe(201);
    const why =
      'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass one is already marked as default. Only one default can exist';
    expect(await outcome(post(api, CLASSES, usual('other')))).toEqual([403, why]);
    expect((await post(api, CLASSES, usual('other', { globalDefault: false }))).code).toBe(201);
    const patch = (name: string, body: object) => api.send('PATCH', `${CLASSES}/${name}`, { body, contentType: MERGE });
    expect(await outcome(patch('other', { globalDefault: true }))).toEqual([403, why]);
    expect((await patch('one', { description: 'x' })).code).toBe(200);
    expect((await patch('other', { description: 'x' })).code).toBe(200);
  });

  it('of the system cannot be deleted, others can', async () => {
    const api = apiInMemory();
    await post(api, CLASSES, usual('one'));
    expect(await outcome(api.send('DELETE', `${CLASSES}/system-cluster-critical`))).toEqual([
      403,
      'priorityclasses.scheduling.k8s.io "system-cluster-critical" is forbidden: this is a system priority class and cannot be deleted',
    ]);
    expect((await api.send('DELETE', `${CLASSES}/one`)).code).toBe(200);
  });
});
