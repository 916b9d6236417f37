import { describe, expect, it } from 'vitest';
import { type ApiInMemory, apiInMemory, pod, podsIn } from '../../../test/support/api-in-memory.ts';
import { PROTOBUF, protobufBody } from '../../../test/support/protobuf-body.ts';

const USERS = {
  n1: { name: 'system:node:n1', groups: ['system:nodes'] },
  viewer: { name: 'vera', groups: ['nodekeeper:viewers'] },
} as const;
const TOKENS = '/apis/authentication.k8s.io/v1/tokenreviews';
const ACCESS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const LOCAL = '/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews';

const as = (who: keyof typeof USERS) => ({ headers: { authorization: `Bearer ${who}` } });
const ask = (api: ApiInMemory, path: string, spec: object) => api.send('POST', path, { body: { spec } });

describe('a TokenReview', () => {
  it('names the user of a token', async () => {
    const api = apiInMemory({ users: { ...USERS } });
    expect(await ask(api, TOKENS, { token: 'viewer' })).toMatchObject({
      code: 201,
      body: { status: { authenticated: true, user: { username: 'vera', groups: expect.any(Array) } } },
    });
  });

  it('of another token is not authenticated, and an empty one is refused', async () => {
    const api = apiInMemory();
    expect((await ask(api, TOKENS, { token: 'nonsense' })).body.status).toEqual({
      user: {},
      error: 'invalid bearer token',
    });
    expect(
      (await ask(api, TOKENS, { token: 'token', audiences: ['vault'] })).body.status.authenticated,
    ).toBeUndefined();
    expect(await ask(api, TOKENS, {})).toMatchObject({
      code: 400,
      body: { message: 'token is required for TokenReview in authentication' },
    });
  });

  it('may be asked by administrators and nodes', async () => {
    const api = apiInMemory({ users: { ...USERS } });
    const body = { spec: { token: 'viewer' } };
    expect((await api.send('POST', TOKENS, { ...as('n1'), body })).code).toBe(201);
    expect((await api.send('POST', TOKENS, { ...as('viewer'), body })).code).toBe(403);
    expect((await api.send('GET', TOKENS)).code).toBe(405);
  });
});

describe('a SubjectAccessReview', () => {
  const resourceAttributes = { verb: 'delete', resource: 'nodes', name: 'n1' };

  it('answers what the API would do, also in protobuf', async () => {
    const api = apiInMemory();
    const of = async (groups: string[]) => {
      const spec = { user: 'ada', groups, resourceAttributes };
      const object = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
      const answers = [
        await ask(api, ACCESS, spec),
        await api.send('POST', ACCESS, { body: protobufBody(object), contentType: PROTOBUF }),
      ];
      return answers.map(({ body }) => body.status.allowed);
    };
    expect(await of(['nodekeeper:admins'])).toEqual([true, true]);
    expect(await of(['nodekeeper:viewers'])).toEqual([false, false]);
  });

  it('knows to which objects the pods of a node refer', async () => {
    const api = apiInMemory();
    await api.send('POST', podsIn('default'), {
      body: pod('p', {
        spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }], imagePullSecrets: [{ name: 's' }] },
      }),
    });
    const mayRead = async (name: string) => {
      const attributes = { verb: 'get', resource: 'secrets', namespace: 'default', name };
      return (
        await ask(api, ACCESS, { user: 'system:node:n1', groups: ['system:nodes'], resourceAttributes: attributes })
      ).body.status.allowed;
    };
    expect(await mayRead('s')).toBe(true);
    expect(await mayRead('other')).toBe(false);
  });

  it('needs a subject and one kind of attributes', async () => {
    const api = apiInMemory();
    expect(await ask(api, ACCESS, { resourceAttributes })).toMatchObject({
      code: 422,
      body: { message: expect.stringContaining('at least one of user or group must be specified') },
    });
    expect(await ask(api, ACCESS, { user: 'ada' })).toMatchObject({
      code: 422,
      body: { details: { kind: 'SubjectAccessReview' } },
    });
  });

  it('that is local is about its namespace', async () => {
    const api = apiInMemory();
    const of = (namespace: string) =>
      ask(api, LOCAL, {
        user: 'ada',
        groups: ['nodekeeper:admins'],
        resourceAttributes: { ...resourceAttributes, namespace },
      });
    expect((await of('default')).body.status).toMatchObject({ allowed: true });
    expect(await of('other')).toMatchObject({
      code: 422,
      body: { message: expect.stringContaining('must match metadata.namespace') },
    });
  });
});

describe('the answer to a review', () => {
  const spec = { user: 'ada', resourceAttributes: { verb: 'get', resource: 'nodes' } };

  it('repeats the review, and stores nothing', async () => {
    const answer = await ask(apiInMemory(), ACCESS, spec);
    expect(answer.body).toEqual({
      kind: 'SubjectAccessReview',
      apiVersion: 'authorization.k8s.io/v1',
      metadata: { creationTimestamp: null },
      spec,
      status: { allowed: false },
    });
  });

  it('names the audiences that a token has, and why none fits', async () => {
    const api = apiInMemory();
    const issuer = 'https://kubernetes.default.svc.cluster.local';
    const of = async (audiences?: string[]) =>
      (await ask(api, TOKENS, { token: 'token', ...(audiences && { audiences }) })).body.status;
    expect(await of()).toMatchObject({ authenticated: true, audiences: [issuer], user: { username: 'tester' } });
    expect(await of([issuer, 'vault'])).toMatchObject({ authenticated: true, audiences: [issuer] });
    expect(await of(['vault', 'x'])).toEqual({
      user: {},
      error: `[invalid bearer token, token audiences ["${issuer}"] is invalid for the target audiences ["vault" "x"]]`,
    });
  });

  it('is about the user, the groups, the uid and the extra values of the review', async () => {
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const api = apiInMemory();
    const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['nodes'] }];
    await api.send('POST', `${rbac}/clusterroles`, { body: { metadata: { name: 'r' }, rules } });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'r' };
    const subjects = [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'dev' }];
    await api.send('POST', `${rbac}/clusterrolebindings`, { body: { metadata: { name: 'b' }, roleRef, subjects } });
    const allowed = async (more: object) => (await ask(api, ACCESS, { ...spec, ...more })).body.status.allowed;
    expect(await allowed({ groups: ['dev'] })).toBe(true);
    expect(await allowed({ user: undefined, groups: ['dev'] })).toBe(true);
    expect(await allowed({ groups: ['other'] })).toBe(false);
    const lease = { verb: 'update', group: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-node-lease' };
    const node = { user: 'system:node:n1', groups: ['system:nodes'] };
    const beats = { extra: { 'nodekeeper.dev/beat-only': ['true'] } };
    const renew = { ...node, resourceAttributes: { ...lease, name: 'n1' } };
    const get = { ...node, resourceAttributes: { verb: 'get', resource: 'services', namespace: 'a', name: 's' } };
    expect([await allowed(renew), await allowed({ ...renew, ...beats })]).toEqual([true, true]);
    expect([await allowed(get), await allowed({ ...get, ...beats })]).toEqual([true, false]);
  });

  it('about a path is that of the path', async () => {
    const of = async (groups: string[]) => {
      const nonResourceAttributes = { verb: 'get', path: '/metrics' };
      return (await ask(apiInMemory(), ACCESS, { user: 'ada', groups, nonResourceAttributes })).body.status.allowed;
    };
    expect([await of(['nodekeeper:viewers']), await of(['dev'])]).toEqual([true, false]);
  });

  it.each([
    [ACCESS, { user: 'ada' }, ['spec.resourceAttributes']],
    [ACCESS, {}, ['spec.user', 'spec.resourceAttributes']],
    [ACCESS, { ...spec, nonResourceAttributes: { verb: 'get', path: '/' } }, ['spec.nonResourceAttributes']],
    [LOCAL, { user: 'ada', nonResourceAttributes: { verb: 'get', path: '/' } }, ['spec.nonResourceAttributes']],
    [LOCAL, spec, ['spec.resourceAttributes.namespace']],
    [LOCAL, { user: 'ada' }, ['spec.resourceAttributes.namespace', 'spec.resourceAttributes']],
  ])('%s with %j names what is wrong: %j', async (path, wrong, fields) => {
    const { code, body } = await ask(apiInMemory(), path, wrong);
    const causes: { field: string }[] = body.details.causes;
    expect([code, causes.map(({ field }) => field)]).toEqual([422, fields]);
  });

  it('has warnings of fields that are not known, or there is none', async () => {
    const body = { spec: { ...spec, colour: 'red' } };
    const api = apiInMemory();
    expect((await api.send('POST', `${ACCESS}?fieldValidation=Strict`, { body })).code).toBe(400);
    const { code, headers } = await api.send('POST', `${ACCESS}?fieldValidation=Warn`, { body });
    expect([code, headers['warning']]).toEqual([201, expect.stringContaining('spec.colour')]);
  });
});

it.each([
  ['a SubjectAccessReview with a name', `${ACCESS}/x`],
  ['a SubjectAccessReview in a namespace', ACCESS.replace('/v1/', '/v1/namespaces/default/')],
  ['a LocalSubjectAccessReview without a namespace', LOCAL.replace('/namespaces/default', '')],
  ['the status of a LocalSubjectAccessReview', `${LOCAL}/x/status`],
])('%s is no place for a review', async (_, path) => {
  const spec = { user: 'ada', resourceAttributes: { verb: 'get', resource: 'nodes', namespace: 'default' } };
  expect((await ask(apiInMemory(), path, spec)).code).toBe(405);
});

it.each([
  ['application/json', 201],
  ['text/html', 406],
  ['application/json;as=Table;v=v1;g=meta.k8s.io', 406],
])('a review for a client that accepts %s is answered with %i', async (accept, code) => {
  const body = { spec: { user: 'ada', resourceAttributes: { verb: 'get', resource: 'nodes' } } };
  expect((await apiInMemory().send('POST', ACCESS, { body, headers: { accept } })).code).toBe(code);
});
