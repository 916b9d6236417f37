import { describe, expect, it } from 'vitest';
import {
  type AccessQuestion,
  authorize,
  authorizePath,
  pathRulesFor,
  readsAsNode,
  readsByReference,
  rulesFor,
  rulesToGrant,
} from './authorize.ts';
import type { UserInfo } from './user-info.ts';

const user = (username: string, ...groups: string[]): UserInfo => ({ username, groups });
const AUTHENTICATED = 'system:authenticated';
const node = user('system:node:n1', 'system:nodes', AUTHENTICATED);
const nameless = user('system:node:', 'system:nodes');
const viewer = user('vera', 'nodekeeper:viewers');
const admin = user('ada', 'nodekeeper:admins');
const master = user('root', 'system:masters');
const bootstrapper = user('system:bootstrap:abc', 'system:bootstrappers');
const probe = user('system:nodekeeper:probe', 'nodekeeper:probes', AUTHENTICATED);
const anyone = user('nora', AUTHENTICATED);
const anonymous = user('system:anonymous', 'system:unauthenticated');

/** `verb group/resource/subresource`, about an object of n1 in its namespace. */
function question(text: string, more: Partial<AccessQuestion> = {}): AccessQuestion {
  const [verb = '', path = ''] = text.split(' ');
  const [group = '', resource = '', subresource = ''] = path.split('/');
  const namespace = resource === 'leases' ? 'kube-node-lease' : 'default';
  return { verb, group, resource, subresource, namespace, name: 'n1', ...more };
}
const may = (who: UserInfo, text: string, more: Partial<AccessQuestion> = {}) =>
  authorize(who, question(text, more)).allowed;
const exactField = (field: string, value: string) => ({
  name: '',
  exactField: (asked: string) => (asked === field ? value : undefined),
});

const VERBS = ['create', 'get', 'list', 'watch', 'update', 'patch', 'delete', 'deletecollection'];
/** What a node may ask about an object of its own name, by resource. Every other pair is refused. */
const OF_NODE: Readonly<Record<string, string>> = {
  '/nodes': 'create get update patch',
  '/nodes/status': 'update patch',
  'coordination.k8s.io/leases': 'create get update patch delete',
  'storage.k8s.io/csinodes': 'create get update patch delete',
  '/pods': 'create get delete',
  '/pods/status': 'update patch',
  '/pods/eviction': 'create',
  '/events': 'create update patch',
  'events.k8s.io/events': 'create update patch',
  'storage.k8s.io/volumeattachments': 'get',
  '/secrets': 'get',
  '/configmaps': 'get',
  '/serviceaccounts/token': 'create',
  '/persistentvolumeclaims': 'get',
  '/persistentvolumes': 'create get delete',
  '/services': 'get list watch',
  '/endpoints': 'get',
  'node.k8s.io/runtimeclasses': 'get list watch',
  'authentication.k8s.io/tokenreviews': 'create',
  'authorization.k8s.io/subjectaccessreviews': 'create',
  'authorization.k8s.io/localsubjectaccessreviews': 'create',
  'storage.k8s.io/csidrivers': 'get list watch',
  'nodekeeper.dev/nodeidentities': 'create get',
  'nodekeeper.dev/leasebatches': 'create',
  'nodekeeper.dev/nodelogs': 'get update',
  'discovery.k8s.io/endpointslices': 'list watch',
  'networking.k8s.io/networkpolicies': 'list watch',
  'nodekeeper.dev/changereads': 'create',
  'nodekeeper.dev/nodevolumes': 'get update delete',
  'nodekeeper.dev/nodeupdates': 'update',
  'authorization.k8s.io/selfsubjectaccessreviews': 'create',
  'authorization.k8s.io/selfsubjectrulesreviews': 'create',
  'authentication.k8s.io/selfsubjectreviews': 'create',
};
const OTHERS = ['/serviceaccounts', '/namespaces', 'apps/deployments', '/pods/log', '/nodes/proxy', '/leases'];

describe('a node', () => {
  it.each([...Object.keys(OF_NODE), ...OTHERS])('may send exactly its verbs to %s', (resource) => {
    const listed = { exactField: (field: string) => (field === 'metadata.name' ? 'other' : undefined) };
    const allowed = VERBS.filter((verb) => {
      const isList = verb === 'list' || verb === 'watch';
      return may(node, `${verb} ${resource}`, isList ? { name: '', ...listed, namespace: '' } : {});
    });
    expect(allowed.join(' ')).toBe(OF_NODE[resource] ?? '');
  });

  it.each(['nodes', 'nodes/status', 'csinodes', 'nodeidentities', 'nodelogs', 'nodeupdates'])(
    'may not write %s of another name',
    (resource) => {
      const path = Object.keys(OF_NODE).find((each) => each.endsWith(`/${resource}`))!;
      const verb = OF_NODE[path]!.split(' ').at(-1)!;
      expect(authorize(node, question(`${verb} ${path}`, { name: 'n2' }))).toEqual({
        allowed: false,
        reason: `node 'n1' can only access ${resource} of its own name`,
      });
    },
  );

  it('may create without a name in the path, and list itself by its name alone', () => {
    expect(may(node, 'create /nodes', { name: '' })).toBe(true);
    expect(may(node, 'create /nodes', { name: 'n2' })).toBe(false);
    expect(may(node, 'get /nodes', { name: '' })).toBe(false);
    expect(may(node, 'list /nodes', exactField('metadata.name', 'n1'))).toBe(true);
    expect(may(node, 'list /nodes', exactField('metadata.name', 'n2'))).toBe(false);
    expect(may(node, 'list /nodes', { name: '' })).toBe(false);
  });

  it('may list and watch the pods of its name alone', () => {
    for (const verb of ['list', 'watch']) {
      expect(may(node, `${verb} /pods`, exactField('spec.nodeName', 'n1'))).toBe(true);
      expect(may(node, `${verb} /pods`, exactField('spec.nodeName', 'n2'))).toBe(false);
      expect(authorize(node, question(`${verb} /pods`, { name: '' })).reason).toContain('spec.nodeName');
    }
  });

  it('may list and watch one Secret by name in a namespace', () => {
    for (const resource of ['/secrets', '/configmaps']) {
      const ask = (more: Partial<AccessQuestion>) => authorize(node, question(`list ${resource}`, more));
      expect(ask(exactField('metadata.name', 's')).allowed).toBe(true);
      expect(ask({ ...exactField('metadata.name', 's'), namespace: '' }).reason).toContain('namespaced object');
      expect(ask({ name: '' })).toEqual({ allowed: false, reason: 'No Object name found' });
      expect(ask(exactField('metadata.name', ''))).toEqual({ allowed: false, reason: 'No Object name found' });
    }
    expect(authorize(node, question('delete /secrets')).reason).toBe('can only read resources of this type');
    expect(authorize(node, question('delete /services')).reason).toBe('');
  });

  it('may renew Leases of the namespace of nodes alone', () => {
    const refused = authorize(node, question('update coordination.k8s.io/leases', { namespace: 'default' }));
    expect(refused).toEqual({
      allowed: false,
      reason: 'can only access leases in the "kube-node-lease" system namespace',
    });
  });

  it('may request tokens of named accounts alone', () => {
    const reason = 'can only create tokens for individual service accounts';
    expect(authorize(node, question('create /serviceaccounts/token', { name: '' }))).toEqual({
      allowed: false,
      reason,
    });
    expect(authorize(node, question('get /serviceaccounts/token'))).toEqual({ allowed: false, reason });
  });

  it('has no permission without a name', () => {
    expect(authorize(nameless, question('get /services'))).toEqual({
      allowed: false,
      reason: 'unknown node for user',
    });
  });

  it('may only renew its Lease with a token for heartbeats', () => {
    const beats = { ...node, extra: { 'nodekeeper.dev/beat-only': ['true'] } };
    const { allowed: get } = authorize(beats, question('get coordination.k8s.io/leases'));
    for (const verb of ['update', 'patch']) expect(may(beats, `${verb} coordination.k8s.io/leases`)).toBe(true);
    expect(get).toBe(false);
    for (const other of ['update /leases', 'update coordination.k8s.io/other', 'update /nodes', 'patch /nodes/status'])
      expect([other, may(beats, other)]).toEqual([other, false]);
    expect(may(beats, 'update coordination.k8s.io/leases/status')).toBe(false);
  });
});

describe('the other groups', () => {
  it('admins may do everything, in both groups', () => {
    for (const who of [admin, master]) {
      expect(authorize(who, question('delete /secrets'))).toEqual({ allowed: true, reason: 'admin' });
      expect(authorizePath(who, { verb: 'post', path: '/anything' }).allowed).toBe(true);
    }
  });

  it('viewers may read everything but Secrets and connections', () => {
    for (const verb of ['get', 'list', 'watch']) expect(may(viewer, `${verb} /pods`)).toBe(true);
    for (const verb of ['create', 'update', 'delete']) expect(may(viewer, `${verb} /pods`)).toBe(false);
    for (const path of ['/secrets', '*/pods', '/*', '/pods/exec', '/pods/attach', '/pods/portforward', '/nodes/proxy'])
      expect([path, may(viewer, `get ${path}`)]).toEqual([path, false]);
    expect(may(viewer, 'get /pods/log')).toBe(true);
    expect(may(viewer, 'get example.com/secrets')).toBe(true);
  });

  it('probes may create a Lease, read and renew their own, and no other', () => {
    const lease = 'coordination.k8s.io/leases';
    const verbs = (path: string, more: Partial<AccessQuestion>) =>
      VERBS.filter((verb) => may(probe, `${verb} ${path}`, more)).join(' ');
    expect(verbs(lease, { name: 'nodekeeper-probe' })).toBe('create get update patch');
    expect(authorize(probe, question(`get ${lease}`, { name: 'nodekeeper-probe' }))).toEqual({
      allowed: true,
      reason: 'probe',
    });
    expect(verbs(lease, { name: '' })).toBe('create');
    expect(verbs(lease, { name: 'n1' })).toBe('create');
    expect(verbs(lease, { name: 'nodekeeper-probe', namespace: 'default' })).toBe('');
    for (const path of ['/leases', 'coordination.k8s.io/leasecandidates', `${lease}/status`]) {
      expect(verbs(path, { name: 'nodekeeper-probe', namespace: 'kube-node-lease' })).toBe('');
    }
    expect(may(anyone, `create ${lease}`)).toBe(false);
  });

  it('bootstrappers may create node identities alone', () => {
    expect(authorize(bootstrapper, question('create nodekeeper.dev/nodeidentities')).allowed).toBe(true);
    for (const other of [
      'get nodekeeper.dev/nodeidentities',
      'create nodekeeper.dev/nodelogs',
      'create /nodeidentities',
    ])
      expect([other, may(bootstrapper, other)]).toEqual([other, false]);
    expect(may(bootstrapper, 'create nodekeeper.dev/nodeidentities/status')).toBe(false);
  });

  it('everyone who is authenticated may review only itself', () => {
    const reviews = ['authorization.k8s.io/selfsubjectaccessreviews', 'authorization.k8s.io/selfsubjectrulesreviews'];
    for (const review of [...reviews, 'authentication.k8s.io/selfsubjectreviews']) {
      expect([may(anyone, `create ${review}`), may(anonymous, `create ${review}`)]).toEqual([true, false]);
      expect([may(anyone, `get ${review}`), may(anyone, `create ${review}/status`)]).toEqual([false, false]);
    }
    expect(may(anyone, 'create authorization.k8s.io/subjectaccessreviews')).toBe(false);
  });
});

describe('paths', () => {
  const DISCOVERY = ['/api', '/api/v1', '/apis', '/apis/apps', '/healthz', '/livez', '/openapi', '/openapi/v3'];
  it.each([...DISCOVERY, '/readyz', '/version', '/version/'])('%s may be read by everyone authenticated', (path) => {
    for (const verb of ['get', 'head']) expect(authorizePath(anyone, { verb, path }).allowed).toBe(true);
    expect(authorizePath(anyone, { verb: 'post', path }).allowed).toBe(false);
    expect(authorizePath(anonymous, { verb: 'get', path }).allowed).toBe(false);
  });

  it.each(['/apix', '/versions', '/healthz/etcd', '/', ''])('%s may not', (path) => {
    expect(authorizePath(anyone, { verb: 'get', path }).allowed).toBe(false);
  });

  it('/metrics may be read by viewers and admins', () => {
    const ask = (who: UserInfo, verb: string, path = '/metrics') => authorizePath(who, { verb, path }).allowed;
    expect([ask(viewer, 'get'), ask(viewer, 'head'), ask(admin, 'get')]).toEqual([true, true, true]);
    expect([ask(viewer, 'post'), ask(anyone, 'get'), ask(viewer, 'get', '/api')]).toEqual([false, false, false]);
  });
});

describe('lists of rules', () => {
  const viewerRules = [{ verbs: ['get'], apiGroups: ['x'], resources: ['y'] }];
  const everything = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };

  it('of paths', () => {
    expect(pathRulesFor(admin)).toEqual([{ verbs: ['*'], nonResourceURLs: ['*'] }]);
    expect(pathRulesFor(anonymous)).toEqual([]);
    expect(pathRulesFor(viewer)).toEqual([{ verbs: ['get'], nonResourceURLs: ['/metrics'] }]);
    expect(pathRulesFor(anyone)[0]?.nonResourceURLs).toEqual(expect.arrayContaining(['/api', '/apis/*', '/version/']));
    expect(pathRulesFor(anyone)[0]?.nonResourceURLs).not.toContain('/metrics');
  });

  it('of a node name it where the rule is about its own name', () => {
    const rules = rulesFor(node, viewerRules);
    const of = (group: string, resource: string) =>
      rules.filter(({ apiGroups, resources }) => apiGroups[0] === group && resources.includes(resource));
    expect(of('', 'nodes')).toMatchObject([{ resourceNames: ['n1'], apiGroups: [''] }]);
    expect(of('', 'services')[0]).not.toHaveProperty('resourceNames');
    expect(of('', 'secrets')[0]).not.toHaveProperty('resourceNames');
    expect(of('x', 'y')).toEqual([]);
    expect(rulesFor(anonymous, viewerRules)).toEqual([]);
  });

  it('of the other groups', () => {
    expect(rulesFor(bootstrapper, viewerRules)).toEqual([
      { verbs: ['create'], apiGroups: ['nodekeeper.dev'], resources: ['nodeidentities'] },
    ]);
    const both = user('ada', 'nodekeeper:admins', 'developers');
    expect(rulesToGrant(both, viewerRules)).toEqual([everything]);
    expect(rulesToGrant(user('vera', 'developers', 'nodekeeper:viewers'), viewerRules)).toEqual(viewerRules);
    expect(rulesToGrant(anonymous, viewerRules)).toEqual([]);
    expect(rulesToGrant(anyone, viewerRules).flatMap(({ resources }) => resources)).toEqual([
      'selfsubjectaccessreviews',
      'selfsubjectrulesreviews',
      'selfsubjectreviews',
    ]);
  });
});

describe('reading as a node', () => {
  it('holds for a node that is neither viewer nor admin', () => {
    expect(readsAsNode(node)).toBe('n1');
    expect(readsAsNode(anyone)).toBeUndefined();
    for (const group of ['nodekeeper:viewers', 'nodekeeper:admins'])
      expect(readsAsNode({ ...node, groups: [...node.groups, group] })).toBeUndefined();
  });

  it('needs a reference for what pods refer to', () => {
    const secret = { verb: 'get', group: '', resource: 'secrets' };
    const claim = { verb: 'get', group: '', resource: 'persistentvolumeclaims' };
    expect(readsByReference(node, secret)).toBe('n1');
    expect(
      readsByReference(node, { verb: 'create', group: '', resource: 'serviceaccounts', subresource: 'token' }),
    ).toBe('n1');
    expect(readsByReference(node, { ...secret, resource: 'services' })).toBeUndefined();
    expect(readsByReference(node, { ...secret, group: 'x' })).toBeUndefined();
    expect(readsByReference(node, { ...secret, subresource: 'status' })).toBeUndefined();
    expect(readsByReference(anyone, secret)).toBeUndefined();
    const withGroup = (group: string) => ({ ...node, groups: [...node.groups, group] });
    expect(readsByReference(withGroup('nodekeeper:admins'), secret)).toBeUndefined();
    expect(readsByReference(withGroup('nodekeeper:viewers'), secret)).toBe('n1');
    expect(readsByReference(withGroup('nodekeeper:viewers'), claim)).toBeUndefined();
  });
});
