import { describe, expect, it } from 'vitest';
import type { ResourceStorage } from '../api/resource-storage.ts';
import type { PolicyView } from '../kinds/roles/grants.ts';
import type { KubePod, KubeRoleBinding, PolicyRule } from '../kinds/types.ts';
import { NODES_GROUP } from './authorize.ts';
import { authorizer, type NodeQuestion, nodeGraph, type ResourceQuestion } from './authorizer.ts';
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

describe('the references of the pods of a node', () => {
  /** Each node has one pod, which refers to the Secret of its name. */
  function graph(podsOf = (nodeName: string): KubePod[] => [podOf(nodeName, nodeName)]) {
    const reads: string[] = [];
    const storage: Partial<ResourceStorage> = {
      async list({ nodeName = '', limit, continueAfter = '0' }) {
        const all = podsOf(nodeName);
        const from = Number(continueAfter);
        reads.push(`${nodeName}@${from}`);
        const next = from + limit < all.length ? { next: String(from + limit) } : {};
        return { items: all.slice(from, from + limit), ...next };
      },
    };
    const { refusal } = nodeGraph({ storageOf: () => storage as ResourceStorage });
    const mayRead = async (name: string, secret: string, nowMs: number) => {
      const target = { group: '', resource: 'secrets', subresource: '', namespace: 'a', name: secret };
      const user = { username: `system:node:${name}`, groups: [NODES_GROUP] };
      return (await refusal({ user, verb: 'get', target, query: undefined, nowMs })) === undefined;
    };
    return { reads, mayRead };
  }
  const podOf = (nodeName: string, secret: string): KubePod => ({
    metadata: { name: secret, namespace: 'a' },
    spec: { nodeName, imagePullSecrets: [{ name: secret }] },
  });

  it('are read again after five seconds, and for what they did not have', async () => {
    const { reads, mayRead } = graph();
    for (const [atMs, times] of [
      [0, 1],
      [4_999, 1],
      [5_000, 2],
      [9_999, 2],
    ] as const) {
      expect(await mayRead('n1', 'n1', atMs)).toBe(true);
      expect(reads).toHaveLength(times);
    }
    expect(await mayRead('n1', 'other', 9_999)).toBe(false);
    expect(reads).toHaveLength(3);
  });

  it.each([
    [999, 1],
    [1_000, 2],
  ])('outlive those of %i other nodes: read %i times', async (count, times) => {
    const { reads, mayRead } = graph();
    await mayRead('n1', 'n1', 0);
    for (let other = 0; other < count; other += 1) await mayRead(`other-${other}`, `other-${other}`, 0);
    await mayRead('n1', 'n1', 0);
    expect(reads.filter((each) => each === 'n1@0')).toHaveLength(times);
  });

  it('of a node that were read again are not dropped before older ones', async () => {
    const { reads, mayRead } = graph();
    await mayRead('n1', 'n1', 0);
    for (let other = 1; other < 1_000; other += 1) await mayRead(`other-${other}`, `other-${other}`, 0);
    for (const name of ['n1', 'another', 'n1']) await mayRead(name, name, 5_000);
    expect(reads.slice(-2)).toEqual(['n1@0', 'another@0']);
  });

  it('are those of ten thousand pods of this node, and of no other one', async () => {
    const { reads, mayRead } = graph((nodeName) => [
      ...Array.from({ length: 10_000 }, (_, index) => podOf(index === 0 ? 'another' : nodeName, `s${index}`)),
      podOf(nodeName, 'beyond'),
    ]);
    expect(await mayRead('n1', 's9999', 0)).toBe(true);
    expect(reads).toHaveLength(20);
    expect(reads.slice(0, 3)).toEqual(['n1@0', 'n1@500', 'n1@1000']);
    expect(await mayRead('n1', 's0', 0)).toBe(false);
    expect(await mayRead('n1', 'beyond', 0)).toBe(false);
  });

  it('contain no name that is longer than a name may be', async () => {
    const { reads, mayRead } = graph();
    expect(await mayRead('n1', 'x'.repeat(254), 0)).toBe(false);
    expect(reads).toEqual([]);
    expect(await mayRead('n1', 'x'.repeat(253), 0)).toBe(false);
    expect(reads).toEqual(['n1@0']);
  });
});

describe('an object that a node asks for', () => {
  const claimOf = (spec: object) => ({ metadata: { name: 'v' }, spec });
  const pod: KubePod = {
    metadata: { name: 'p', namespace: 'a' },
    spec: {
      nodeName: 'n1',
      serviceAccountName: 'bot',
      imagePullSecrets: [{ name: 's' }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }],
    } as never,
  };
  const volumes: Readonly<Record<string, object>> = {
    bound: claimOf({ claimRef: { namespace: 'a', name: 'c' } }),
    other: claimOf({ claimRef: { namespace: 'b', name: 'c' } }),
    unbound: claimOf({}),
  };
  const asked: unknown[] = [];
  const { refusal } = nodeGraph({
    storageOf: (descriptor) =>
      ({
        list: async () => ({ items: [pod] }),
        get: async (namespace: string, name: string) => {
          asked.push([descriptor.resource, namespace, name]);
          return volumes[name];
        },
      }) as Partial<ResourceStorage> as ResourceStorage,
  });
  const node = { username: 'system:node:n1', groups: [NODES_GROUP] };
  const why = "no relationship found between node 'n1' and this object";
  const ask = (more: object, query?: string, verb = 'get', user: UserInfo = node) => {
    const target = { group: '', resource: 'secrets', subresource: '', namespace: 'a', name: 's', ...more };
    return refusal({
      user,
      verb,
      target,
      query: query === undefined ? undefined : new URLSearchParams(query),
      nowMs: 0,
    });
  };

  it('must be one that a pod of it refers to, in its namespace', async () => {
    expect(await ask({})).toBeUndefined();
    for (const other of [{ namespace: 'b' }, { name: 't' }, { resource: 'configmaps' }])
      expect(await ask(other)).toBe(why);
    expect(await ask({ resource: 'persistentvolumeclaims', name: 'c' })).toBeUndefined();
    expect(await ask({ resource: 'serviceaccounts', subresource: 'token', name: 'bot' }, undefined, 'create')).toBe(
      undefined,
    );
  });

  it('is found by the selector of a list, or it is none', async () => {
    const select = (selector: string) => ask({ name: '' }, `fieldSelector=${encodeURIComponent(selector)}`, 'list');
    expect(await select('metadata.name=s')).toBeUndefined();
    for (const selector of ['metadata.name=t', 'metadata.name!=s', 'metadata.name=', '!', ''])
      expect(await select(selector), selector).toBe(why);
    expect(await ask({ name: '' }, '', 'list')).toBe(why);
    expect(await ask({ name: '' }, undefined, 'list')).toBe(why);
    // The name in the path comes first.
    expect(await ask({}, 'fieldSelector=metadata.name%3Dt')).toBeUndefined();
  });

  it('that is a volume is one of a claim of its pods', async () => {
    asked.length = 0;
    const volume = (name: string) => ask({ resource: 'persistentvolumes', namespace: '', name });
    expect(await volume('bound')).toBeUndefined();
    for (const name of ['other', 'unbound', 'none']) expect(await volume(name), name).toBe(why);
    expect(asked[0]).toEqual(['persistentvolumes', '', 'bound']);
  });

  it('of other users, and of other kinds, is of no concern here', async () => {
    expect(await ask({ name: 't' }, undefined, 'get', { username: 'ada', groups: [] })).toBeUndefined();
    expect(await ask({ resource: 'services', name: 't' })).toBeUndefined();
  });
});
