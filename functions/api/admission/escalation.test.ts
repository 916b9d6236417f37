import { describe, expect, it } from 'vitest';
import {
  APPLY,
  type ApiAnswer,
  type ApiInMemory,
  apiInMemory,
  JSON_PATCH,
  MERGE,
} from '../../../test/support/api-in-memory.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const RBAC_GROUP = 'rbac.authorization.k8s.io';
const USERS = {
  /** Administrator of the namespace a. */
  nora: { name: 'nora', groups: ['team-a'] },
  ada: { name: 'ada', groups: ['nodekeeper:admins'] },
  vera: { name: 'vera', groups: ['nodekeeper:viewers'] },
};
const as = (who: string) => ({ headers: { authorization: `Bearer ${who}` } });
const ROLES = `${RBAC}/namespaces/a/roles`;
const BINDINGS = `${RBAC}/namespaces/a/rolebindings`;
const roleRef = (kind: 'Role' | 'ClusterRole', name: string) => ({ apiGroup: RBAC_GROUP, kind, name });
const nora = { kind: 'User', apiGroup: RBAC_GROUP, name: 'nora' };
const rule = (verbs: string[], apiGroups: string[], resources: string[]) => ({ verbs, apiGroups, resources });

/** A cluster in which nora has the role `admin` in namespace a, and the rules `more` in the whole cluster. */
async function cluster(more: object[] = []): Promise<ApiInMemory> {
  const api = apiInMemory({ users: USERS });
  const make = async (path: string, body: object) => expect((await api.send('POST', path, { body })).code).toBe(201);
  await make('/api/v1/namespaces', { metadata: { name: 'a' } });
  await make('/api/v1/namespaces', { metadata: { name: 'b' } });
  await make(BINDINGS, { metadata: { name: 'nora' }, roleRef: roleRef('ClusterRole', 'admin'), subjects: [nora] });
  if (more.length > 0) {
    await make(`${RBAC}/clusterroles`, { metadata: { name: 'more' }, rules: more });
    await make(`${RBAC}/clusterrolebindings`, {
      metadata: { name: 'more' },
      roleRef: roleRef('ClusterRole', 'more'),
      subjects: [nora],
    });
  }
  return api;
}

const send = (api: ApiInMemory, method: string, path: string, body?: object, contentType?: string) =>
  api.send(method, path, {
    ...as('nora'),
    ...(body === undefined ? {} : { body }),
    ...(contentType === undefined ? {} : { contentType }),
  });
const outcome = ({ code, body }: ApiAnswer) => [code, body.message];

describe('an administrator of a namespace', () => {
  it('grants what they hold', async () => {
    const api = await cluster();
    const pods = { metadata: { name: 'pods' }, rules: [rule(['get', 'delete'], [''], ['pods'])] };
    expect((await send(api, 'POST', ROLES, pods)).code).toBe(201);
    for (const ref of [roleRef('Role', 'pods'), roleRef('ClusterRole', 'edit')]) {
      const body = { metadata: { name: ref.name }, roleRef: ref, subjects: [{ ...nora, name: 'otto' }] };
      expect((await send(api, 'POST', BINDINGS, body)).code).toBe(201);
    }
    expect((await send(api, 'DELETE', `${BINDINGS}/edit`)).code).toBe(200);
  });

  it('grants nothing else, by any way of writing', async () => {
    const api = await cluster();
    const nodes = { metadata: { name: 'r' }, rules: [rule(['*'], [''], ['nodes', 'pods'])] };
    const refusal = `roles.rbac.authorization.k8s.io "r" is forbidden: user "nora" (groups=["team-a" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["nodes"], Verbs:["*"]}
{APIGroups:[""], Resources:["pods"], Verbs:["*"]}`;
    expect(outcome(await send(api, 'POST', ROLES, nodes))).toEqual([403, refusal]);
    expect(outcome(await send(api, 'PUT', `${ROLES}/r`, nodes))).toEqual([403, refusal]);
    const applied = { apiVersion: `${RBAC_GROUP}/v1`, kind: 'Role', ...nodes };
    expect(outcome(await send(api, 'PATCH', `${ROLES}/r?fieldManager=m`, applied, APPLY))).toEqual([403, refusal]);
    expect((await send(api, 'POST', `${ROLES}?dryRun=All`, nodes)).code).toBe(403);
    expect((await send(api, 'POST', ROLES, { metadata: { name: 'r' }, rules: [] })).code).toBe(201);
    expect(outcome(await send(api, 'PUT', `${ROLES}/r`, nodes))).toEqual([403, refusal]);
    expect(outcome(await send(api, 'PATCH', `${ROLES}/r`, { rules: nodes.rules }, MERGE))).toEqual([403, refusal]);
    const patch = [{ op: 'replace', path: '/rules', value: nodes.rules }];
    expect(outcome(await send(api, 'PATCH', `${ROLES}/r`, patch, JSON_PATCH))).toEqual([403, refusal]);
    expect(outcome(await send(api, 'PATCH', `${ROLES}/r?fieldManager=m&force=true`, applied, APPLY))).toEqual([
      403,
      refusal,
    ]);
    expect((await api.send('GET', `${ROLES}/r`)).body.rules).toEqual([]);
  });

  it('cannot bind a role with more rules, in no namespace and not in the cluster', async () => {
    const api = await cluster();
    const binding = { metadata: { name: 'x' }, roleRef: roleRef('ClusterRole', 'cluster-admin'), subjects: [nora] };
    expect(outcome(await send(api, 'POST', BINDINGS, binding))).toEqual([
      403,
      'rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "nora" (groups=["team-a" "system:authenticated"]) ' +
        'is attempting to grant RBAC permissions not currently held:\n' +
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}',
    ]);
    expect((await send(api, 'POST', `${RBAC}/namespaces/b/rolebindings`, binding)).code).toBe(403);
    expect((await send(api, 'POST', `${RBAC}/clusterrolebindings`, binding)).code).toBe(403);
    const missing = { ...binding, roleRef: roleRef('ClusterRole', 'missing') };
    expect(outcome(await send(api, 'POST', BINDINGS, missing))).toEqual([
      404,
      'clusterroles.rbac.authorization.k8s.io "missing" not found',
    ]);
  });

  it('cannot add a subject to a binding of a role with more rules', async () => {
    const api = await cluster();
    const binding = { metadata: { name: 'ops' }, roleRef: roleRef('ClusterRole', 'cluster-admin'), subjects: [] };
    expect((await api.send('POST', BINDINGS, { body: binding })).code).toBe(201);
    expect((await send(api, 'PATCH', `${BINDINGS}/ops`, { subjects: [nora] }, MERGE)).code).toBe(403);
    // The garbage collector changes these fields, and they grant nothing.
    expect((await send(api, 'PATCH', `${BINDINGS}/ops`, { metadata: { finalizers: ['x/y'] } }, MERGE)).code).toBe(200);
  });
});

describe('a refusal', () => {
  it('names 200 rules at most, and how many there are besides', async () => {
    const api = await cluster();
    const linesFor = async (count: number) => {
      const resources = Array.from({ length: count }, (_, index) => `r${index}`);
      const body = { metadata: { name: 'r' }, rules: [rule(['get'], ['x'], resources)] };
      return ((await send(api, 'POST', ROLES, body)).body.message as string).split('\n').slice(1);
    };
    const [all, more] = [await linesFor(200), await linesFor(202)];
    expect([all.length, all.at(-1)?.startsWith('{')]).toEqual([200, true]);
    expect([more.length, more.at(-1)]).toEqual([201, 'and 2 more']);
  });

  it('says that rules may be missing because a role does not exist', async () => {
    const api = await cluster();
    const body = { metadata: { name: 'lost' }, roleRef: roleRef('ClusterRole', 'none'), subjects: [nora] };
    await api.send('POST', BINDINGS, { body });
    const role = { metadata: { name: 'r' }, rules: [rule(['get'], [''], ['nodes'])] };
    expect((await send(api, 'POST', ROLES, role)).body.message).toMatch(
      /; resolution errors: \[clusterrole\.rbac\.authorization\.k8s\.io "none" not found\]$/,
    );
    const held = { metadata: { name: 'r' }, rules: [rule(['get'], [''], ['pods'])] };
    expect((await send(api, 'POST', ROLES, held)).code).toBe(201);
  });
});

it.each(['PATCH', 'PUT', 'DELETE'])('a default role cannot be changed by anybody: %s', async (method) => {
  const api = await cluster();
  const path = `${RBAC}/clusterroles/view`;
  const { body: role } = await api.send('GET', path);
  const changed = method === 'DELETE' ? {} : { body: method === 'PUT' ? role : { rules: [] }, contentType: MERGE };
  const sent = method === 'PUT' ? { body: { ...role, rules: [] } } : changed;
  expect(outcome(await api.send(method, path, sent))).toEqual([
    403,
    'clusterroles.rbac.authorization.k8s.io "view" is forbidden: the default roles and bindings cannot be changed; use a role with an aggregation label, or a binding of your own',
  ]);
});

describe('a user with further verbs', () => {
  it('writes only the roles that `escalate` names, and none that is new', async () => {
    const escalate = { ...rule(['escalate'], [RBAC_GROUP], ['roles']), resourceNames: ['r'] };
    const api = await cluster([escalate]);
    const nodes = [rule(['*'], ['*'], ['*'])];
    expect((await send(api, 'POST', ROLES, { metadata: { name: 'r' }, rules: nodes })).code).toBe(403);
    for (const name of ['r', 's'])
      expect((await send(api, 'POST', ROLES, { metadata: { name }, rules: [] })).code).toBe(201);
    expect((await send(api, 'PATCH', `${ROLES}/r`, { rules: nodes }, MERGE)).code).toBe(200);
    expect((await send(api, 'PATCH', `${ROLES}/s`, { rules: nodes }, MERGE)).code).toBe(403);
  });

  it('cannot end the aggregation of a role without all rules', async () => {
    const api = await cluster([rule(['update', 'patch', 'get'], [RBAC_GROUP], ['clusterroles'])]);
    const body = {
      metadata: { name: 'all' },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
    };
    expect((await api.send('POST', `${RBAC}/clusterroles`, { body })).code).toBe(201);
    expect((await send(api, 'PATCH', `${RBAC}/clusterroles/all`, { aggregationRule: null }, MERGE)).code).toBe(403);
    expect(
      (await send(api, 'PATCH', `${RBAC}/clusterroles/all`, { metadata: { finalizers: ['x/y'] } }, MERGE)).code,
    ).toBe(200);
  });

  it('writes any role with `escalate`', async () => {
    const api = await cluster([rule(['escalate'], [RBAC_GROUP], ['roles'])]);
    const nodes = { metadata: { name: 'r' }, rules: [rule(['*'], ['*'], ['*'])] };
    expect((await send(api, 'POST', ROLES, nodes)).code).toBe(201);
  });

  it('binds the named role with `bind`, and no other', async () => {
    const api = await cluster([{ ...rule(['bind'], [RBAC_GROUP], ['clusterroles']), resourceNames: ['system:node'] }]);
    const binding = (name: string) => ({
      metadata: { name: 'x' },
      roleRef: roleRef('ClusterRole', name),
      subjects: [],
    });
    expect((await send(api, 'POST', BINDINGS, binding('cluster-admin'))).code).toBe(403);
    expect((await send(api, 'POST', BINDINGS, binding('system:node'))).code).toBe(201);
  });

  it('cannot aggregate without all rules', async () => {
    const api = await cluster([rule(['create', 'update', 'patch', 'get'], [RBAC_GROUP], ['clusterroles'])]);
    const selectors = [{ matchLabels: { a: 'b' } }];
    const body = { metadata: { name: 'all' }, aggregationRule: { clusterRoleSelectors: selectors } };
    const refusal = [
      403,
      'clusterroles.rbac.authorization.k8s.io "all" is forbidden: must have cluster-admin privileges to use the aggregationRule',
    ];
    expect(outcome(await send(api, 'POST', `${RBAC}/clusterroles`, body))).toEqual(refusal);
    expect((await api.send('POST', `${RBAC}/clusterroles`, { ...as('ada'), body })).code).toBe(201);
    const wider = { aggregationRule: { clusterRoleSelectors: [{ matchLabels: {} }] } };
    expect(outcome(await send(api, 'PATCH', `${RBAC}/clusterroles/all`, wider, MERGE))).toEqual(refusal);
  });
});

it('lets administrators of the cluster grant everything, also a role that does not exist yet', async () => {
  const api = await cluster();
  for (const name of ['cluster-admin', 'later']) {
    const body = { metadata: { name }, roleRef: roleRef('ClusterRole', name), subjects: [nora] };
    expect((await api.send('POST', BINDINGS, { ...as('ada'), body })).code).toBe(201);
  }
});

it('lets a viewer grant what viewers read, once they may write roles', async () => {
  const api = await cluster();
  const body = {
    metadata: { name: 'vera' },
    roleRef: roleRef('ClusterRole', 'system:aggregate-to-admin'),
    subjects: [{ ...nora, name: 'vera' }],
  };
  expect((await api.send('POST', BINDINGS, { body })).code).toBe(201);
  const write = (name: string, resource: string) =>
    api.send('POST', ROLES, { ...as('vera'), body: { metadata: { name }, rules: [rule(['get'], [''], [resource])] } });
  expect((await write('c', 'configmaps')).code).toBe(201);
  expect((await write('s', 'secrets')).code).toBe(403);
  expect((await write('all', '*')).code).toBe(403);
});
