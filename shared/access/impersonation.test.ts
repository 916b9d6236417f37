import { describe, expect, it } from 'vitest';
import { type ApiInMemory, apiInMemory } from '../../test/support/api-in-memory.ts';
import type { Authorizer, ResourceQuestion } from './authorizer.ts';
import { effectiveUser, withoutImpersonation } from './impersonation.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC = `/apis/${RBAC_GROUP}/v1`;
const WHOAMI = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const USERS = {
  ada: { name: 'ada', groups: ['nodekeeper:admins'] },
  uma: { name: 'uma', groups: [] },
  vera: { name: 'vera', groups: ['nodekeeper:viewers'] },
  machine: { name: 'system:node:n1', groups: ['system:nodes'] },
  probe: { name: 'system:nodekeeper:probe', groups: ['nodekeeper:probes'] },
};

async function cluster(rules: object[] = []): Promise<ApiInMemory> {
  const api = apiInMemory({ users: USERS });
  const make = async (path: string, body: object) => expect((await api.send('POST', path, { body })).code).toBe(201);
  await make('/api/v1/namespaces', { metadata: { name: 'a' } });
  await make(`${RBAC}/clusterroles`, { metadata: { name: 'acting' }, rules });
  await make(`${RBAC}/clusterrolebindings`, {
    metadata: { name: 'acting' },
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: 'acting' },
    subjects: [{ kind: 'User', apiGroup: RBAC_GROUP, name: 'uma' }],
  });
  return api;
}

/** Who the request of `who` is, with these headers. */
async function identity(api: ApiInMemory, who: keyof typeof USERS, headers: Record<string, string>) {
  const impersonation = Object.fromEntries(
    Object.entries(headers).map(([key, value]) => [`impersonate-${key}`, value]),
  );
  const answer = await api.send('POST', WHOAMI, {
    body: {},
    headers: { authorization: `Bearer ${who}`, ...impersonation },
  });
  return answer.code === 201 ? answer.body.status.userInfo : [answer.code, answer.body.message];
}

const impersonate = (resources: string[], resourceNames?: string[], apiGroups = ['']) => ({
  verbs: ['impersonate'],
  apiGroups,
  resources,
  ...(resourceNames === undefined ? {} : { resourceNames }),
});

describe('an administrator', () => {
  it('acts as any user, with the groups that the request names', async () => {
    const api = await cluster();
    expect(await identity(api, 'ada', { user: 'otto' })).toEqual({
      username: 'otto',
      groups: ['system:authenticated'],
    });
    expect(
      await identity(api, 'ada', { user: 'otto', group: 'x, y,x', uid: '7', 'extra-acme.com%2fproject': 'p' }),
    ).toEqual({
      username: 'otto',
      uid: '7',
      groups: ['x', 'y', 'system:authenticated'],
      extra: { 'acme.com/project': ['p'] },
    });
  });

  it('acts as a service account with its groups', async () => {
    const api = await cluster();
    expect(await identity(api, 'ada', { user: 'system:serviceaccount:a:bot' })).toEqual({
      username: 'system:serviceaccount:a:bot',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:a', 'system:authenticated'],
    });
    expect(await identity(api, 'ada', { user: 'system:serviceaccount:a:bot', group: 'only' })).toMatchObject({
      groups: ['only', 'system:authenticated'],
    });
  });

  it('has the permissions of that user only', async () => {
    const api = await cluster();
    const as = (user: string) => ({ headers: { authorization: 'Bearer ada', 'impersonate-user': user } });
    expect((await api.send('GET', '/api/v1/nodes', as('otto'))).body.message).toBe(
      'nodes is forbidden: User "otto" cannot list resource "nodes" in API group "" at the cluster scope',
    );
    expect((await api.send('GET', '/api', as('otto'))).code).toBe(200);
    // Not authenticated: discovery is closed.
    expect((await api.send('GET', '/api', as('system:anonymous'))).code).toBe(403);
    expect(await identity(api, 'ada', { user: 'system:anonymous' })).toEqual([
      403,
      expect.stringContaining('cannot create'),
    ]);
  });
});

describe('another user', () => {
  it.each(['uma', 'vera', 'machine', 'probe'] as const)('cannot act as anyone: %s', async (who) => {
    const api = await cluster();
    const { name } = USERS[who];
    expect(await identity(api, who, { user: 'otto' })).toEqual([
      403,
      `users "otto" is forbidden: User "${name}" cannot impersonate resource "users" in API group "" at the cluster scope`,
    ]);
    // Not even as itself, with more groups.
    expect(await identity(api, who, { user: name, group: 'system:masters' })).toEqual([403, expect.any(String)]);
  });

  it('needs the verb for each part of the identity', async () => {
    const api = await cluster([impersonate(['users'])]);
    expect(await identity(api, 'uma', { user: 'otto' })).toMatchObject({ username: 'otto' });
    expect(await identity(api, 'uma', { user: 'otto', group: 'system:masters' })).toEqual([
      403,
      'groups "system:masters" is forbidden: User "uma" cannot impersonate resource "groups" in API group "" at the cluster scope',
    ]);
    expect(await identity(api, 'uma', { user: 'system:serviceaccount:a:bot' })).toEqual([
      403,
      'serviceaccounts "bot" is forbidden: User "uma" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "a"',
    ]);
    expect(await identity(api, 'uma', { user: 'otto', 'extra-scopes': 'all' })).toEqual([
      403,
      'userextras.authentication.k8s.io "all" is forbidden: User "uma" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
    ]);
    expect(await identity(api, 'uma', { user: 'otto', uid: '7' })).toEqual([403, expect.stringContaining('uids')]);
  });

  it('acts only with the groups and extra values that a rule names', async () => {
    const api = await cluster([
      impersonate(['users']),
      impersonate(['groups'], ['dev']),
      impersonate(['userextras/scopes'], ['view'], ['authentication.k8s.io']),
    ]);
    expect(await identity(api, 'uma', { user: 'otto', group: 'dev', 'extra-scopes': 'view' })).toMatchObject({
      groups: ['dev', 'system:authenticated'],
      extra: { scopes: ['view'] },
    });
    // A comma does not hide a second group, and a user named system:masters is no group.
    expect(await identity(api, 'uma', { user: 'otto', group: 'dev,system:masters' })).toEqual([
      403,
      expect.any(String),
    ]);
    expect(await identity(api, 'uma', { user: 'system:masters' })).toMatchObject({ groups: ['system:authenticated'] });
    expect(await identity(api, 'uma', { user: 'otto', 'extra-other': 'view' })).toEqual([403, expect.any(String)]);
    // Such a name is no service account, so it is a user without the groups of one.
    expect(await identity(api, 'uma', { user: 'system:serviceaccount:a:b:c' })).toMatchObject({
      groups: ['system:authenticated'],
    });
  });

  it('cannot name parts without a user, parts that are not known, or very many', async () => {
    const api = await cluster();
    expect(await identity(api, 'ada', { group: 'x' })).toEqual([400, expect.stringContaining('without impersonating')]);
    expect(await identity(api, 'ada', { user: 'x', role: 'y' })).toEqual([
      400,
      'header impersonate-role is not supported',
    ]);
    const many = Array.from({ length: 200 }, (_, index) => `g${index}`).join(',');
    expect(await identity(api, 'ada', { user: 'x', group: many })).toEqual([
      400,
      expect.stringContaining('at most 100'),
    ]);
  });
});

describe('the user of a request', () => {
  const caller = { username: 'uma', groups: ['x'] };
  const questions: ResourceQuestion[] = [];
  const allowing = {
    async authorize(user, question, nowMs) {
      expect([user, nowMs]).toEqual([caller, 7]);
      questions.push(question);
      return { allowed: true, reason: '' };
    },
  } as Partial<Authorizer> as Authorizer;
  const userOf = (headers: Record<string, string>) => effectiveUser(allowing, headers, caller, 7);
  const part = (more: object) => ({
    ...{ verb: 'impersonate', group: '', subresource: '', namespace: '' },
    ...more,
  });

  it('is the caller without headers of impersonation', async () => {
    questions.length = 0;
    expect(await userOf({ 'x-impersonate-user': 'otto', authorization: 'x' })).toBe(caller);
    expect(questions).toEqual([]);
  });

  it('is asked for in parts: the user, each group, each extra value, the uid', async () => {
    questions.length = 0;
    const headers = {
      'impersonate-user': 'otto',
      'impersonate-group': ' a ,b,,a',
      'impersonate-uid': '7',
      'impersonate-extra-Scopes': 'view,edit',
      'impersonate-extra-100%25': 'x',
      'impersonate-extra-%zz': 'y',
      'impersonate-extra-': 'without a key',
    };
    expect(await userOf(headers)).toEqual({
      username: 'otto',
      uid: '7',
      groups: ['a', 'b', 'system:authenticated'],
      extra: { scopes: ['view', 'edit'], '100%': ['x'], '%zz': ['y'] },
    });
    const authentication = { group: 'authentication.k8s.io' };
    expect(questions).toEqual([
      part({ resource: 'users', name: 'otto' }),
      part({ resource: 'groups', name: 'a' }),
      part({ resource: 'groups', name: 'b' }),
      part({ ...authentication, resource: 'userextras', subresource: 'scopes', name: 'view' }),
      part({ ...authentication, resource: 'userextras', subresource: 'scopes', name: 'edit' }),
      part({ ...authentication, resource: 'userextras', subresource: '100%', name: 'x' }),
      part({ ...authentication, resource: 'userextras', subresource: '%zz', name: 'y' }),
      part({ ...authentication, resource: 'uids', name: '7' }),
    ]);
  });

  it('that is a service account is asked for in its namespace', async () => {
    questions.length = 0;
    await userOf({ 'impersonate-user': 'system:serviceaccount:a:bot' });
    expect(questions).toEqual([part({ resource: 'serviceaccounts', namespace: 'a', name: 'bot' })]);
  });

  it.each([
    ['otto', '', ['system:authenticated']],
    ['otto', 'system:authenticated', ['system:authenticated']],
    ['otto', 'x,system:unauthenticated', ['x', 'system:unauthenticated']],
    ['system:anonymous', '', ['system:unauthenticated']],
    ['system:anonymous', 'x,system:unauthenticated', ['x', 'system:unauthenticated']],
    ['system:anonymous', 'system:authenticated', ['system:authenticated', 'system:unauthenticated']],
  ])('%s with the groups %j is in %j', async (user, groups, expected) => {
    const answer = await userOf({ 'impersonate-user': user, 'impersonate-group': groups });
    expect(answer).toEqual({ username: user, groups: expected });
  });

  it('has at most a hundred parts', async () => {
    const groups = (count: number) => Array.from({ length: count }, (_, index) => `g${index}`).join(',');
    const withGroups = (count: number) => userOf({ 'impersonate-user': 'otto', 'impersonate-group': groups(count) });
    expect((await withGroups(99)).groups).toHaveLength(100);
    await expect(withGroups(100)).rejects.toMatchObject({ status: { code: 400 } });
  });

  it.each([
    [{ 'impersonate-uid': '7' }],
    [{ 'impersonate-extra-a': 'b' }],
    [{ 'impersonate-user': '' }],
    [{ 'impersonate-user': 'otto', 'impersonate-extra': 'b' }],
    [{ 'impersonate-user': 'otto', 'impersonate-users': 'b' }],
  ])('is not found in %j', async (headers) => {
    await expect(userOf(headers)).rejects.toMatchObject({ status: { code: 400 } });
  });

  it('is no longer in the headers that are passed on', () => {
    const headers = { 'impersonate-user': 'otto', 'impersonate-extra-a': 'b', accept: 'c', 'x-impersonate-user': 'd' };
    expect(withoutImpersonation(headers)).toEqual({ accept: 'c', 'x-impersonate-user': 'd' });
  });
});
