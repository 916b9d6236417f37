import { describe, expect, it } from 'vitest';
import { type ApiInMemory, apiInMemory } from '../../test/support/api-in-memory.ts';

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
