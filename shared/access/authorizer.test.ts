import { describe, expect, it } from 'vitest';
import type { PolicyView } from '../kinds/roles/grants.ts';
import type { KubeRoleBinding, PolicyRule } from '../kinds/types.ts';
import { authorizer, type ResourceQuestion } from './authorizer.ts';
import type { NodeQuestion } from './node-graph.ts';
import type { Policies } from './policy-cache.ts';
import type { UserInfo } from './user-info.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const uma: UserInfo = { username: 'uma', groups: ['system:authenticated'] };
const ada: UserInfo = { username: 'ada', groups: ['nodekeeper:admins'] };
const node: UserInfo = { username: 'system:node:n1', groups: ['system:nodes'] };
const rule = (verbs: string[], resources: string[], more: Partial<PolicyRule> = {}): PolicyRule => ({
  verbs,
  apiGroups: [''],
  resources,
  ...more,
});
const GET_PODS = rule(['get'], ['pods']);
const question = (verb: string, resource: string, more: Partial<ResourceQuestion> = {}): ResourceQuestion => ({
  ...{ verb, group: '', resource, subresource: '', namespace: 'a', name: 'x' },
  ...more,
});

/** A cluster where uma has a ClusterRole with these rules, in the whole cluster. */
function cluster(rules: readonly PolicyRule[] | undefined, options: { isFresh?: boolean; refusal?: string } = {}) {
  const views: unknown[][] = [];
  const asked: NodeQuestion[] = [];
  let current = rules;
  const binding: KubeRoleBinding = {
    metadata: { name: 'b' },
    roleRef: { kind: 'ClusterRole', name: 'r' },
    subjects: [{ kind: 'User', name: 'uma' }],
  };
  const policies: Policies = {
    async view(namespace, { nowMs, ageMaxMs }): Promise<PolicyView> {
      views.push([namespace, nowMs, ageMaxMs]);
      const now = current;
      return {
        namespace,
        clusterRoleBindings: [binding],
        roleBindings: [],
        rulesOf: (kind, name) => (kind === 'ClusterRole' && name === 'r' ? now : undefined),
      };
    },
    isFresh: ({ nowMs, ageMaxMs }) => {
      views.push(['fresh?', nowMs, ageMaxMs]);
      return options.isFresh === true;
    },
    clusterRoles: async () => [],
    changed: () => {},
  };
  const access = authorizer({
    policies,
    nodeGraph: {
      async refusal(each) {
        asked.push(each);
        return options.refusal;
      },
    },
    viewerRules: [{ verbs: ['list'], apiGroups: [''], resources: ['pods'] }],
  });
  return {
    access,
    views,
    asked,
    grant: (next: readonly PolicyRule[]) => {
      current = next;
    },
  };
}

describe('a question about a resource', () => {
  it('that a built-in rule allows reads no policies', async () => {
    const { access, views } = cluster([]);
    expect(await access.authorize(ada, question('delete', 'secrets'), NOW_MS)).toEqual({
      allowed: true,
      reason: 'admin',
    });
    expect(views).toEqual([]);
  });

  it('is answered by roles that are at most five seconds old, or as old as the caller accepts', async () => {
    const { access, views } = cluster([GET_PODS]);
    const answer = await access.authorize(uma, question('get', 'pods'), NOW_MS);
    expect(answer).toEqual({
      allowed: true,
      reason: 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "uma"',
    });
    await access.authorize(uma, question('get', 'pods'), NOW_MS, 60_000);
    expect(views).toEqual([
      ['a', NOW_MS, 5_000],
      ['a', NOW_MS, 60_000],
    ]);
  });

  it('that is refused is asked again of roles that are at most a second old', async () => {
    const { access, views, grant } = cluster([]);
    const asked = access.authorize(uma, question('get', 'pods'), NOW_MS);
    grant([GET_PODS]);
    expect((await asked).allowed).toBe(true);
    expect(views).toEqual([
      ['a', NOW_MS, 5_000],
      ['fresh?', NOW_MS, 1_000],
      ['a', NOW_MS, 1_000],
    ]);
  });

  it('that is refused by fresh roles is not asked again', async () => {
    const { access, views } = cluster([], { isFresh: true });
    expect(await access.authorize(uma, question('get', 'pods'), NOW_MS)).toEqual({ allowed: false, reason: '' });
    expect(views).toHaveLength(2);
  });

  it.each([
    ['verb', { verb: 'list' }],
    ['group', { group: 'apps' }],
    ['resource', { resource: 'nodes' }],
    ['subresource', { subresource: 'log' }],
    ['name', { name: 'y' }],
  ])('is refused for another %s than that of the rule', async (_, other) => {
    const { access } = cluster([{ ...GET_PODS, resourceNames: ['x'] }]);
    expect((await access.authorize(uma, question('get', 'pods'), NOW_MS)).allowed).toBe(true);
    expect((await access.authorize(uma, { ...question('get', 'pods'), ...other }, NOW_MS)).allowed).toBe(false);
  });

  it('of a node is checked against its pods, and then against roles, with both reasons', async () => {
    const why = 'no relationship';
    const { access, asked } = cluster(undefined, { refusal: why, isFresh: true });
    const query = new URLSearchParams('fieldSelector=metadata.name%3Dx');
    const ofNode = question('get', 'secrets', { query });
    expect(await access.authorize(node, ofNode, NOW_MS)).toEqual({ allowed: false, reason: why });
    expect(asked).toEqual([{ user: node, verb: 'get', target: ofNode, query, nowMs: NOW_MS }]);
    const both = { ...node, username: 'uma', groups: [] };
    expect(await access.authorize(both, question('get', 'secrets'), NOW_MS)).toEqual({
      allowed: false,
      reason: 'RBAC: clusterrole.rbac.authorization.k8s.io "r" not found',
    });
    const nameless = { username: 'uma', groups: ['system:nodes'] };
    expect(await access.authorize(nameless, question('get', 'secrets'), NOW_MS)).toEqual({
      allowed: false,
      reason: 'unknown node for user\nRBAC: clusterrole.rbac.authorization.k8s.io "r" not found',
    });
  });

  it('of a node that its pods allow needs no role', async () => {
    const { access, views } = cluster([]);
    expect(await access.authorize(node, question('get', 'secrets'), NOW_MS)).toEqual({ allowed: true, reason: 'node' });
    expect(views).toEqual([]);
  });
});

it('a question about a path is answered by the built-in rules, then by the roles of the cluster', async () => {
  const { access, views } = cluster([{ verbs: ['get'], nonResourceURLs: ['/metrics'] }]);
  const ask = (path: string) => access.authorizePath(uma, { verb: 'get', path }, NOW_MS);
  expect(await ask('/version')).toEqual({ allowed: true, reason: 'discovery' });
  expect(views).toEqual([]);
  expect((await ask('/metrics')).allowed).toBe(true);
  expect(views).toEqual([['', NOW_MS, 5_000]]);
  expect((await ask('/debug')).allowed).toBe(false);
});

const REVIEWS = [
  {
    verbs: ['create'],
    apiGroups: ['authorization.k8s.io'],
    resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
  },
  { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
];

describe('the rules of a user', () => {
  it('are the built-in ones and those of roles, each once, with those of paths apart', async () => {
    const paths = { verbs: ['get'], nonResourceURLs: ['/metrics'] };
    const named = { ...GET_PODS, resourceNames: ['x'] };
    const { access, views } = cluster([
      GET_PODS,
      { verbs: ['get'], nonResourceURLs: ['/a'] },
      named,
      GET_PODS,
      REVIEWS[1]!,
    ]);
    const rules = await access.rulesOf({ ...uma, groups: [...uma.groups, 'nodekeeper:viewers'] }, 'a', NOW_MS);
    const viewer = { verbs: ['list'], apiGroups: [''], resources: ['pods'] };
    expect(rules.resourceRules).toEqual([viewer, ...REVIEWS, GET_PODS, named]);
    expect(rules.nonResourceRules[0]?.nonResourceURLs).toContain('/version');
    expect(rules.nonResourceRules[0]?.nonResourceURLs).toContain(paths.nonResourceURLs[0]);
    expect(rules.nonResourceRules.slice(1)).toEqual([{ verbs: ['get'], nonResourceURLs: ['/a'] }]);
    expect(rules.fault).toBe('');
    expect(views).toEqual([['a', NOW_MS, 1_000]]);
  });

  it('may be incomplete, for a reason', async () => {
    const { access } = cluster(undefined);
    const missing = 'clusterrole.rbac.authorization.k8s.io "r" not found';
    expect(await access.rulesOf(uma, 'a', NOW_MS)).toMatchObject({ resourceRules: REVIEWS, fault: missing });
    expect(await access.rulesHeld(uma, 'a', NOW_MS)).toMatchObject({ faults: [missing] });
  });

  it('that may be granted to others are those without further limit', async () => {
    const { access, views } = cluster([GET_PODS]);
    const { rules, faults } = await access.rulesHeld({ ...uma, groups: [...uma.groups, 'system:nodes'] }, 'a', NOW_MS);
    expect(rules.slice(0, 2)).toEqual(REVIEWS);
    expect(rules[2]?.nonResourceURLs).toContain('/version');
    expect(rules.slice(3)).toEqual([GET_PODS]);
    expect(faults).toEqual([]);
    expect(views).toEqual([['a', NOW_MS, 1_000]]);
  });
});

it('the rules of a role are those that it has at most a second ago', async () => {
  const { access, views } = cluster([GET_PODS]);
  expect(await access.rulesOfRole({ kind: 'ClusterRole', name: 'r' }, 'a', NOW_MS)).toEqual([GET_PODS]);
  expect(await access.rulesOfRole({ kind: 'Role', name: 'r' }, 'a', NOW_MS)).toBeUndefined();
  expect(views[0]).toEqual(['a', NOW_MS, 1_000]);
});
