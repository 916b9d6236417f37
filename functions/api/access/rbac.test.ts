import { describe, expect, it } from 'vitest';
import { APPLY, type ApiInMemory, apiInMemory, MERGE } from '../../../test/support/api-in-memory.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const RBAC_GROUP = 'rbac.authorization.k8s.io';
const USERS = {
  uma: { name: 'uma', groups: [] },
  ned: { name: 'ned', groups: ['team-a'] },
  vera: { name: 'vera', groups: ['nodekeeper:viewers'] },
  node: { name: 'system:node:n1', groups: ['system:nodes'] },
} as const;
type Who = keyof typeof USERS;

const as = (who: Who) => ({ headers: { authorization: `Bearer ${who}` } });
const user = (name: string) => ({ kind: 'User', apiGroup: RBAC_GROUP, name });
const roleRef = (kind: 'Role' | 'ClusterRole', name: string) => ({ apiGroup: RBAC_GROUP, kind, name });
const rule = (verbs: string[], resources: string[], apiGroups = ['']) => ({ verbs, apiGroups, resources });

async function cluster(): Promise<ApiInMemory> {
  const api = apiInMemory({ users: USERS });
  for (const name of ['a', 'b']) await created(api, '/api/v1/namespaces', { metadata: { name } });
  return api;
}

async function created(api: ApiInMemory, path: string, body: object): Promise<void> {
  const answer = await api.send('POST', path, { body });
  expect(answer.code, answer.text).toBe(201);
}

const role = (api: ApiInMemory, namespace: string, name: string, rules: object[]) =>
  created(api, `${RBAC}/namespaces/${namespace}/roles`, { metadata: { name }, rules });
const bind = (api: ApiInMemory, namespace: string, who: string, ref: object, name = `${who}-1`) =>
  created(api, `${RBAC}/namespaces/${namespace}/rolebindings`, {
    metadata: { name },
    roleRef: ref,
    subjects: [user(who)],
  });
const clusterRole = (api: ApiInMemory, name: string, rules: object[], more: object = {}) =>
  created(api, `${RBAC}/clusterroles`, { metadata: { name, ...more }, rules });
const bindInCluster = (api: ApiInMemory, who: string, name: string) =>
  created(api, `${RBAC}/clusterrolebindings`, {
    metadata: { name: `${who}-${name}` },
    roleRef: roleRef('ClusterRole', name),
    subjects: [user(who)],
  });

const code = async (api: ApiInMemory, who: Who, path: string, method = 'GET') =>
  (await api.send(method, path, as(who))).code;

describe('a RoleBinding', () => {
  it('grants the rules of a Role in its own namespace only', async () => {
    const api = await cluster();
    expect(await code(api, 'uma', '/api/v1/namespaces/a/pods')).toBe(403);
    await role(api, 'a', 'reader', [rule(['get', 'list'], ['pods'])]);
    await bind(api, 'a', 'uma', roleRef('Role', 'reader'));
    expect(await code(api, 'uma', '/api/v1/namespaces/a/pods')).toBe(200);
    expect(await code(api, 'uma', '/api/v1/namespaces/b/pods')).toBe(403);
    expect(await code(api, 'uma', '/api/v1/pods')).toBe(403);
    expect(await code(api, 'uma', '/api/v1/namespaces/a/secrets')).toBe(403);
    expect(await code(api, 'ned', '/api/v1/namespaces/a/pods')).toBe(403);
    expect(await code(api, 'uma', '/api/v1/namespaces/a/pods/p/status')).toBe(403);
  });

  it('grants the rules of a ClusterRole in its own namespace', async () => {
    const api = await cluster();
    await bind(api, 'a', 'uma', roleRef('ClusterRole', 'view'));
    expect(await code(api, 'uma', '/api/v1/namespaces/a/configmaps')).toBe(200);
    expect(await code(api, 'uma', '/api/v1/namespaces/a/secrets')).toBe(403);
    expect(await code(api, 'uma', '/api/v1/namespaces/b/configmaps')).toBe(403);
    // The path of a namespace names it as its own namespace.
    expect(await code(api, 'uma', '/api/v1/namespaces/a')).toBe(200);
    expect(await code(api, 'uma', '/api/v1/namespaces/b')).toBe(403);
    expect(await code(api, 'uma', '/api/v1/nodes')).toBe(403);
  });

  it('of a service account without a namespace means its own namespace', async () => {
    const api = apiInMemory({ users: { sa: { name: 'system:serviceaccount:a:bot', groups: [] } } });
    await created(api, '/api/v1/namespaces', { metadata: { name: 'a' } });
    await created(api, `${RBAC}/namespaces/a/rolebindings`, {
      metadata: { name: 'bot' },
      roleRef: roleRef('ClusterRole', 'view'),
      subjects: [{ kind: 'ServiceAccount', name: 'bot' }],
    });
    const answer = await api.send('GET', '/api/v1/namespaces/a/pods', { headers: { authorization: 'Bearer sa' } });
    expect(answer.code).toBe(200);
  });

  it('is refused with upstream’s words, which name a missing role', async () => {
    const api = await cluster();
    const head = 'pods is forbidden: User "uma" cannot list resource "pods" in API group "" in the namespace "a"';
    expect((await api.send('GET', '/api/v1/namespaces/a/pods', as('uma'))).body.message).toBe(head);
    await bind(api, 'a', 'uma', roleRef('Role', 'missing'));
    expect((await api.send('GET', '/api/v1/namespaces/a/pods', as('uma'))).body.message).toBe(
      `${head}: RBAC: role.rbac.authorization.k8s.io "missing" not found`,
    );
    await bindInCluster(api, 'uma', 'absent');
    expect((await api.send('GET', '/api/v1/namespaces/a/pods', as('uma'))).body.message).toBe(
      `${head}: RBAC: [clusterrole.rbac.authorization.k8s.io "absent" not found, ` +
        'role.rbac.authorization.k8s.io "missing" not found]',
    );
  });

  it('cannot name another role later', async () => {
    const api = await cluster();
    await bind(api, 'a', 'uma', roleRef('ClusterRole', 'view'));
    const answer = await api.send('PATCH', `${RBAC}/namespaces/a/rolebindings/uma-1`, {
      contentType: MERGE,
      body: { roleRef: roleRef('ClusterRole', 'cluster-admin') },
    });
    expect([answer.code, answer.body.details.causes[0].field]).toEqual([422, 'roleRef']);
    expect(answer.body.message).toContain('cannot change roleRef');
  });
});

it('opens no other namespace by an odd path', async () => {
  const api = await cluster();
  await bind(api, 'a', 'uma', roleRef('ClusterRole', 'edit'));
  await created(api, '/api/v1/namespaces/b/secrets', { metadata: { name: 's' } });
  const secret = 'secrets/s';
  for (const path of [
    `/api/v1/namespaces/a/../b/${secret}`,
    `/api/v1/namespaces/a/%2e%2e/b/${secret}`,
    `/api/v1/namespaces/a%2f..%2fb/${secret}`,
    `/api/v1/namespaces/a/./../b/${secret}`,
    `/api/v1/namespaces/a//namespaces/b/${secret}`,
    `/api/v1//namespaces/b/${secret}`,
    `/api/v1/namespaces/a/secrets/../../b/${secret}`,
    `/api/v1/namespaces/b/${secret}/`,
    `/api/v1/namespaces/b%00/${secret}`,
    `/api/v1/watch/namespaces/b/${secret}`,
    `/API/v1/namespaces/b/${secret}`,
    `/api/v1/namespaces/%62/${secret}`,
    `/healthz/../api/v1/namespaces/b/${secret}`,
  ]) {
    for (const query of ['', '?namespace=a', '?fieldSelector=metadata.namespace%3Da']) {
      expect([400, 403, 404], path + query).toContain(await code(api, 'uma', path + query));
    }
  }
  expect(await code(api, 'uma', `/api/v1/namespaces/a/${secret}`)).toBe(404);
});

describe('a rule with resource names', () => {
  const selected = (name: string) => `/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3D${name}`;

  it('allows a list and a watch of the objects that it names, as informers of one object send them', async () => {
    const api = await cluster();
    for (const name of ['mine', 'other']) {
      await created(api, '/api/v1/namespaces/a/secrets', { metadata: { name } });
    }
    await role(api, 'a', 'reader', [
      { ...rule(['list', 'watch', 'deletecollection'], ['secrets']), resourceNames: ['mine'] },
    ]);
    await bind(api, 'a', 'uma', roleRef('Role', 'reader'));
    const list = await api.send('GET', selected('mine'), as('uma'));
    expect([list.code, list.body.items?.map((each: { metadata: { name: string } }) => each.metadata.name)]).toEqual([
      200,
      ['mine'],
    ]);
    expect(await code(api, 'uma', `${selected('mine')}&watch=1&timeoutSeconds=1`)).toBe(200);
    expect(await code(api, 'uma', '/api/v1/watch/namespaces/a/secrets/mine?timeoutSeconds=1')).toBe(200);
    const refused = await api.send('GET', selected('other'), as('uma'));
    expect([refused.code, refused.body.message]).toEqual([
      403,
      'secrets "other" is forbidden: User "uma" cannot list resource "secrets" in API group "" in the namespace "a"',
    ]);
    for (const path of [
      '/api/v1/namespaces/a/secrets',
      '/api/v1/namespaces/a/secrets?fieldSelector=metadata.name!%3Dmine',
      `${selected('other')}&fieldSelector=metadata.name%3Dmine`,
      '/api/v1/secrets?fieldSelector=metadata.name%3Dmine',
    ]) {
      expect(await code(api, 'uma', path), path).toBe(403);
    }
    // A deletion of a collection never counts as one of the selected name, as upstream.
    expect(await code(api, 'uma', selected('mine'), 'DELETE')).toBe(403);
  });
});

describe('an update or an apply', () => {
  it('creates an object only with the verb create', async () => {
    const api = await cluster();
    const writes = rule(['get', 'update', 'patch'], ['roles'], [RBAC_GROUP]);
    await role(api, 'a', 'writer', [writes]);
    await bind(api, 'a', 'uma', roleRef('Role', 'writer'));
    const path = `${RBAC}/namespaces/a/roles/new`;
    const body = { apiVersion: `${RBAC_GROUP}/v1`, kind: 'Role', metadata: { name: 'new' }, rules: [] };
    const put = () => api.send('PUT', path, { ...as('uma'), body });
    const apply = () => api.send('PATCH', `${path}?fieldManager=m`, { ...as('uma'), body, contentType: APPLY });
    const refusal =
      'roles.rbac.authorization.k8s.io "new" is forbidden: User "uma" cannot create resource "roles" in API group ' +
      '"rbac.authorization.k8s.io" in the namespace "a"';
    for (const answer of [await put(), await apply()])
      expect([answer.code, answer.body.message]).toEqual([403, refusal]);
    await role(api, 'a', 'creator', [rule(['create'], ['roles'], [RBAC_GROUP])]);
    await bind(api, 'a', 'uma', roleRef('Role', 'creator'), 'creator');
    expect((await apply()).code).toBe(201);
    expect((await put()).code).toBe(200);
  });
});

describe('a ClusterRoleBinding', () => {
  it('grants resources of all namespaces, of the cluster, and paths', async () => {
    const api = await cluster();
    await clusterRole(api, 'ops', [
      rule(['get', 'list'], ['nodes', 'pods']),
      { verbs: ['get'], nonResourceURLs: ['/metrics'] },
    ]);
    expect(await code(api, 'uma', '/metrics')).toBe(403);
    await bindInCluster(api, 'uma', 'ops');
    for (const path of ['/api/v1/nodes', '/api/v1/pods', '/api/v1/namespaces/b/pods', '/metrics']) {
      expect(await code(api, 'uma', path), path).toBe(200);
    }
  });

  it('of a group grants to its members', async () => {
    const api = await cluster();
    await created(api, `${RBAC}/clusterrolebindings`, {
      metadata: { name: 'team' },
      roleRef: roleRef('ClusterRole', 'view'),
      subjects: [{ kind: 'Group', apiGroup: RBAC_GROUP, name: 'team-a' }],
    });
    expect(await code(api, 'ned', '/api/v1/pods')).toBe(200);
    expect(await code(api, 'uma', '/api/v1/pods')).toBe(403);
  });

  it('adds to what a node may read, and the node may still write nothing of others', async () => {
    const api = await cluster();
    await created(api, '/api/v1/namespaces/a/configmaps', { metadata: { name: 'c' } });
    expect((await api.send('GET', '/api/v1/namespaces/a/configmaps/c', as('node'))).body.message).toContain(
      `: no relationship found between node 'n1' and this object`,
    );
    await created(api, `${RBAC}/namespaces/a/rolebindings`, {
      metadata: { name: 'nodes' },
      roleRef: roleRef('ClusterRole', 'edit'),
      subjects: [{ kind: 'Group', apiGroup: RBAC_GROUP, name: 'system:nodes' }],
    });
    expect(await code(api, 'node', '/api/v1/namespaces/a/configmaps/c')).toBe(200);
    const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'm', image: 'i' }] } };
    const answer = await api.send('POST', '/api/v1/namespaces/a/pods', { ...as('node'), body: pod });
    expect([answer.code, answer.body.message]).toEqual([403, expect.stringContaining('can only create mirror pods')]);
  });
});

describe('aggregated ClusterRoles', () => {
  it('have the rules of all roles with their label, also when read', async () => {
    const api = await cluster();
    await bind(api, 'a', 'uma', roleRef('ClusterRole', 'view'));
    expect(await code(api, 'uma', '/apis/nodekeeper.dev/v1alpha1/decisions')).toBe(403);
    expect(await code(api, 'uma', '/apis/coordination.k8s.io/v1/namespaces/a/leases')).toBe(403);
    const labels = { [`${RBAC_GROUP}/aggregate-to-view`]: 'true' };
    await clusterRole(api, 'lease-viewer', [rule(['get', 'list'], ['leases'], ['coordination.k8s.io'])], { labels });
    expect(await code(api, 'uma', '/apis/coordination.k8s.io/v1/namespaces/a/leases')).toBe(200);
    const view = (await api.send('GET', `${RBAC}/clusterroles/view`)).body;
    expect(view.rules).toContainEqual(rule(['get', 'list'], ['leases'], ['coordination.k8s.io']));
    // view is a part of edit, and edit of admin.
    const admin = (await api.send('GET', `${RBAC}/clusterroles/admin`)).body;
    expect(admin.rules).toContainEqual(rule(['get', 'list'], ['leases'], ['coordination.k8s.io']));
    expect(admin.rules).toContainEqual(expect.objectContaining({ resources: ['rolebindings', 'roles'] }));
    expect((await api.send('DELETE', `${RBAC}/clusterroles/lease-viewer`)).code).toBe(200);
    expect(await code(api, 'uma', '/apis/coordination.k8s.io/v1/namespaces/a/leases')).toBe(403);
  });

  it('in a circle have the rules of all of them', async () => {
    const api = await cluster();
    for (const [name, other] of [
      ['one', 'two'],
      ['two', 'one'],
    ] as const) {
      await created(api, `${RBAC}/clusterroles`, {
        metadata: { name, labels: { part: name } },
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: { part: other } }, { matchLabels: { leaf: name } }] },
      });
      await clusterRole(api, `leaf-${name}`, [rule(['get'], [name])], { labels: { leaf: name } });
    }
    const { rules } = (await api.send('GET', `${RBAC}/clusterroles/one`)).body;
    expect(rules.map(({ resources }: { resources: string[] }) => resources[0]).sort()).toEqual(['one', 'two']);
  });

  it('need a selector', async () => {
    const api = await cluster();
    const answer = await api.send('POST', `${RBAC}/clusterroles`, {
      body: { metadata: { name: 'x' }, aggregationRule: {} },
    });
    expect([answer.code, answer.body.message]).toEqual([
      422,
      expect.stringContaining('at least one clusterRoleSelector required if aggregationRule is non-nil'),
    ]);
  });
});

describe('the default roles', () => {
  it('exist without being stored, are in every list, and cannot be changed or deleted', async () => {
    const api = await cluster();
    await clusterRole(api, 'between', []);
    const names = (answer: { body: { items: { metadata: { name: string } }[] } }) =>
      answer.body.items.map(({ metadata }) => metadata.name);
    const all = names(await api.send('GET', `${RBAC}/clusterroles`));
    expect(all).toEqual(all.toSorted());
    expect(all).toEqual(
      expect.arrayContaining(['admin', 'between', 'cluster-admin', 'edit', 'system:node', 'system:discovery', 'view']),
    );
    const paged: string[] = [];
    for (let next = ''; ; ) {
      const page = await api.send('GET', `${RBAC}/clusterroles?limit=4&continue=${next}`);
      paged.push(...names(page));
      next = page.body.metadata.continue ?? '';
      if (next === '') break;
    }
    expect(paged).toEqual(all);
    const path = `${RBAC}/clusterroles/view`;
    const refusal = /clusterroles.rbac.authorization.k8s.io "view" is forbidden: the default roles/;
    for (const answer of [
      await api.send('DELETE', path),
      await api.send('PATCH', path, { contentType: MERGE, body: { metadata: { labels: { a: 'b' } } } }),
      await api.send('PUT', path, { body: { metadata: { name: 'view' }, rules: [] } }),
    ]) {
      expect([answer.code, answer.body.message]).toEqual([403, expect.stringMatching(refusal)]);
    }
    const again = await api.send('POST', `${RBAC}/clusterroles`, { body: { metadata: { name: 'view' }, rules: [] } });
    expect(again.code).toBe(403);
    expect((await api.send('DELETE', `${RBAC}/clusterroles`)).code).toBe(200);
    expect(names(await api.send('GET', `${RBAC}/clusterroles`))).toEqual(all.filter((name) => name !== 'between'));
    expect(names(await api.send('GET', `${RBAC}/clusterrolebindings`))).toContain('cluster-admin');
  });

  it('have distinct names and uids', async () => {
    const api = await cluster();
    const { items } = (await api.send('GET', `${RBAC}/clusterroles`)).body;
    const uids = items.map(({ metadata }: { metadata: { uid: string } }) => metadata.uid);
    expect(new Set(uids).size).toBe(items.length);
    for (const uid of uids) expect(uid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});

describe('a grant', () => {
  it('that is withdrawn ends at once in the process that wrote it, and within 5 s in another one', async () => {
    const api = await cluster();
    await bind(api, 'a', 'uma', roleRef('ClusterRole', 'view'));
    const other = apiInMemory({ users: USERS, items: api.items });
    const path = '/api/v1/namespaces/a/pods';
    expect([await code(api, 'uma', path), await code(other, 'uma', path)]).toEqual([200, 200]);
    await api.send('DELETE', `${RBAC}/namespaces/a/rolebindings/uma-1`);
    expect([await code(api, 'uma', path), await code(other, 'uma', path)]).toEqual([403, 200]);
    other.advance(5_000);
    expect(await code(other, 'uma', path)).toBe(403);
    await bind(api, 'a', 'uma', roleRef('ClusterRole', 'view'));
    expect(await code(other, 'uma', path)).toBe(403);
    // A refusal is checked again after a second.
    other.advance(1_000);
    expect(await code(other, 'uma', path)).toBe(200);
  });

  it('costs the users of built-in groups no read, and others none within 5 s', async () => {
    const { items, ...rest } = await cluster();
    let reads = 0;
    const counting = new Proxy(items, {
      get(target, name, receiver) {
        const member = Reflect.get(target, name, receiver) as unknown;
        if (typeof member !== 'function') return member;
        return (...call: unknown[]) => {
          const keys = JSON.stringify(call);
          if (keys.includes('roles') || keys.includes('rolebindings')) reads += 1;
          return (member as (...inner: unknown[]) => unknown).apply(target, call);
        };
      },
    });
    const api = apiInMemory({ users: USERS, items: counting });
    expect(await code(api, 'vera', '/api/v1/namespaces/a/pods')).toBe(200);
    expect(await code(api, 'vera', '/metrics')).toBe(200);
    expect(await code(api, 'node', '/api/v1/nodes/n1')).toBe(404);
    expect(await code(api, 'node', '/apis')).toBe(200);
    expect(await code(api, 'uma', '/api/v1')).toBe(200);
    expect(reads).toBe(0);
    await bind({ items, ...rest }, 'a', 'uma', roleRef('ClusterRole', 'view'));
    expect(await code(api, 'uma', '/api/v1/namespaces/a/pods')).toBe(200);
    // The heads of the four kinds, and the bindings of the namespace.
    expect(reads).toBe(2);
    api.advance(4_000);
    expect(await code(api, 'uma', '/api/v1/namespaces/a/pods')).toBe(200);
    expect(reads).toBe(2);
    api.advance(1_000);
    expect(await code(api, 'uma', '/api/v1/namespaces/a/pods')).toBe(200);
    expect(reads).toBe(3);
  });
});
