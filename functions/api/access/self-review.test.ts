import { expect, it } from 'vitest';
import { apiInMemory } from '../../../test/support/api-in-memory.ts';

const RULES = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
const ACCESS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const USERS = {
  ada: { name: 'ada', groups: ['nodekeeper:admins'] },
  vera: { name: 'vera', groups: ['nodekeeper:viewers'] },
  machine: { name: 'system:node:n1', groups: ['system:nodes'] },
  joiner: { name: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] },
  stranger: { name: 'stranger', groups: [] },
};
type Rule = { verbs: string[]; apiGroups: string[]; resources: string[]; resourceNames?: string[] };

async function rulesOf(user: keyof typeof USERS) {
  const headers = { authorization: `Bearer ${user}` };
  const { code, body } = await apiInMemory({ users: USERS }).send('POST', RULES, {
    body: { spec: { namespace: 'default' } },
    headers,
  });
  expect(code).toBe(201);
  return body.status as { resourceRules: Rule[]; nonResourceRules: unknown[]; incomplete: boolean };
}

it('lists all that a user may do, and says that the list is complete', async () => {
  expect(await rulesOf('ada')).toMatchObject({
    nonResourceRules: expect.arrayContaining([{ verbs: ['*'], nonResourceURLs: ['*'] }]),
    incomplete: false,
  });
  expect((await rulesOf('ada')).resourceRules).toContainEqual({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] });
  const paths = async (user: keyof typeof USERS) => JSON.stringify((await rulesOf(user)).nonResourceRules);
  expect(await paths('vera')).toContain('/metrics');
  expect(await paths('stranger')).not.toContain('/metrics');
  expect(await paths('stranger')).toContain('/version');
  const viewed = (await rulesOf('vera')).resourceRules.flatMap(({ resources }) => resources);
  expect(viewed).toEqual(expect.arrayContaining(['configmaps', 'nodes/status', 'deployments/scale']));
  expect(viewed).not.toContain('secrets');
  expect(viewed).not.toContain('*');
  expect((await rulesOf('joiner')).resourceRules).toContainEqual({
    verbs: ['create'],
    apiGroups: ['nodekeeper.dev'],
    resources: ['nodeidentities'],
  });
});

it('lists what a node may do, by API group, and its own Lease and Node by name', async () => {
  const { resourceRules } = await rulesOf('machine');
  const ruleOf = (group: string, resource: string) =>
    resourceRules.filter(({ apiGroups, resources }) => apiGroups.includes(group) && resources.includes(resource));
  expect(ruleOf('coordination.k8s.io', 'leases').length).toBeGreaterThan(0);
  expect(ruleOf('', 'pods').length).toBeGreaterThan(0);
  expect(resourceRules.filter(({ verbs, apiGroups }) => verbs.includes('*') || apiGroups.includes('*'))).toEqual([]);
  for (const { resourceNames } of resourceRules) expect(resourceNames ?? ['n1']).toEqual(['n1']);
  expect(resourceRules.some(({ resourceNames }) => resourceNames !== undefined)).toBe(true);
});

it('grants nothing but questions about oneself to a user without groups', async () => {
  const { resourceRules } = await rulesOf('stranger');
  expect(resourceRules).toEqual([
    {
      verbs: ['create'],
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
    },
    { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
  ]);
});

it('needs a namespace for a list of rules', async () => {
  const answer = await apiInMemory().send('POST', RULES, { body: { spec: {} } });
  expect([answer.code, answer.body.message]).toEqual([400, 'no namespace on request']);
});

it.each([
  ['spec.resourceAttributes', {}],
  [
    'spec.nonResourceAttributes',
    { resourceAttributes: { verb: 'get', resource: 'nodes' }, nonResourceAttributes: { verb: 'get', path: '/' } },
  ],
])('refuses a question about both a resource and a path, or about neither: %s', async (field, spec) => {
  const headers = { authorization: 'Bearer vera' };
  expect(await apiInMemory({ users: USERS }).send('POST', ACCESS, { body: { spec }, headers })).toMatchObject({
    code: 422,
    body: { details: { causes: [{ field }] } },
  });
});

const answerOf = async (user: keyof typeof USERS, spec: object) => {
  const headers = { authorization: `Bearer ${user}` };
  const { body } = await apiInMemory({ users: USERS }).send('POST', ACCESS, { body: { spec }, headers });
  return body.status as object;
};

it.each([
  ['get', true],
  ['head', true],
  ['post', false],
])('lets everybody %s a path that is no resource: %s', async (verb, allowed) => {
  expect(await answerOf('stranger', { nonResourceAttributes: { verb, path: '/version' } })).toMatchObject({ allowed });
});

it.each([
  ['stranger', false],
  ['machine', false],
  ['vera', true],
  ['ada', true],
] as const)('answers whether %s may get the metrics: %s', async (user, allowed) => {
  expect(await answerOf(user, { nonResourceAttributes: { verb: 'get', path: '/metrics' } })).toMatchObject({ allowed });
});

it.each([
  ['authorization.k8s.io', 'selfsubjectaccessreviews'],
  ['authorization.k8s.io', 'selfsubjectrulesreviews'],
  ['authentication.k8s.io', 'selfsubjectreviews'],
])('lets everybody create a question about oneself: %s/%s', async (group, resource) => {
  const spec = (verb: string) => ({ resourceAttributes: { verb, group, resource } });
  expect(await answerOf('stranger', spec('create'))).toEqual({ allowed: true, reason: 'self review' });
  expect(await answerOf('stranger', spec('delete'))).toMatchObject({ allowed: false });
});

it('names the rule that allows a machine with a bootstrap token to enrol', async () => {
  const resourceAttributes = { verb: 'create', group: 'nodekeeper.dev', resource: 'nodeidentities' };
  expect(await answerOf('joiner', { resourceAttributes })).toEqual({ allowed: true, reason: 'bootstrap' });
  expect(await answerOf('stranger', { resourceAttributes })).toMatchObject({ allowed: false });
});

it('answers everybody who they are', async () => {
  const headers = { authorization: 'Bearer stranger' };
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  expect(await apiInMemory({ users: USERS }).send('POST', path, { body: {}, headers })).toMatchObject({
    code: 201,
    body: { status: { userInfo: { username: 'stranger' } } },
  });
});

it('answers no to an administrator about what is not served, and says why', async () => {
  const about = (verb: string, resource: string) => ({
    resourceAttributes: { verb, group: 'nodekeeper.dev', resource },
  });
  expect(await answerOf('ada', about('get', 'nodeidentities'))).toEqual({ allowed: true, reason: 'admin' });
  expect(await answerOf('ada', about('update', 'nodeidentities'))).toEqual({
    allowed: false,
    reason: expect.stringMatching(/nodeidentities/),
  });
});

it('answers without a reason where there is none', async () => {
  expect(await answerOf('stranger', { nonResourceAttributes: { verb: 'get', path: '/x' } })).toEqual({
    allowed: false,
  });
});

it.each([
  ['GET', RULES, 405],
  ['DELETE', ACCESS, 405],
  ['POST', `${ACCESS}/x`, 405],
])('%s %s is answered with %i', async (method, path, code) => {
  const body = { spec: { resourceAttributes: { verb: 'get', resource: 'nodes' } } };
  expect((await apiInMemory().send(method, path, method === 'POST' ? { body } : {})).code).toBe(code);
});

it('repeats the question, and is answered for clients that read JSON', async () => {
  const spec = { resourceAttributes: { verb: 'get', resource: 'nodes' } };
  const api = apiInMemory();
  expect((await api.send('POST', ACCESS, { body: { spec } })).body).toEqual({
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: { creationTimestamp: null },
    spec,
    status: { allowed: true, reason: 'admin' },
  });
  expect((await api.send('POST', ACCESS, { body: { spec }, headers: { accept: 'text/html' } })).code).toBe(406);
  const rules = await api.send('POST', RULES, { body: { spec: { namespace: 'default' } } });
  expect(rules.body).toMatchObject({ kind: 'SelfSubjectRulesReview', spec: { namespace: 'default' } });
  expect(rules.body.status).not.toHaveProperty('evaluationError');
});

it('says why the list of rules may be incomplete', async () => {
  const api = apiInMemory({ users: USERS });
  const rbac = 'rbac.authorization.k8s.io';
  const body = {
    metadata: { name: 'b' },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'none' },
    subjects: [{ kind: 'User', apiGroup: rbac, name: 'stranger' }],
  };
  await api.send('POST', `/apis/${rbac}/v1/clusterrolebindings`, { body });
  const headers = { authorization: 'Bearer stranger' };
  const answer = await api.send('POST', RULES, { body: { spec: { namespace: 'default' } }, headers });
  expect(answer.body.status).toMatchObject({
    incomplete: false,
    evaluationError: 'clusterrole.rbac.authorization.k8s.io "none" not found',
  });
});

it.each([
  [{ verb: 'get', resource: 'nodes' }, true],
  [{ verb: 'use', resource: 'nodes' }, true],
  [{ verb: 'get', resource: 'unheard' }, true],
  [{ verb: 'create', resource: 'componentstatuses' }, false],
  [{ verb: 'update', group: 'nodekeeper.dev', resource: 'nodeidentities', subresource: 'x' }, true],
  [{ verb: 'update', group: 'nodekeeper.dev', resource: 'nodeidentities' }, false],
])('an administrator may do %j: %s', async (resourceAttributes, allowed) => {
  expect(await answerOf('ada', { resourceAttributes })).toMatchObject({ allowed });
});
