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
