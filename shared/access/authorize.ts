/**
 * The built-in rules, by group. They are checked before roles and bindings, and need no read. Kubernetes: "Using RBAC
 * Authorization", default roles, and "Using Node Authorization".
 *
 * system:masters, nodekeeper:admins   everything
 * nodekeeper:viewers                  reading, but no Secrets
 * system:nodes                        NODE_RULES, limited to the node's own objects: the name in the request, or the
 *                                     field selector of a list, must be its own. restrict-node.ts checks the changes
 *                                     of a write, once the objects are known.
 * system:bootstrappers                creating one node identity
 * nodekeeper:probes                   the Lease that the probes of node-monitor renew, which belongs to no node
 * system:authenticated                own identity and permissions; discovery
 */
import { LEASE_NAMESPACE } from '../kinds/leases/resource.ts';
import { BEAT_ONLY_EXTRA } from './node-identity.ts';
import { PROBE_GROUP, PROBE_LEASE } from './probe-identity.ts';
import type { UserInfo } from './user-info.ts';

export interface AccessQuestion {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** The value that the field selector of a list or watch requires for a field, undefined for none. */
  readonly exactField?: (field: string) => string | undefined;
}

export type AccessAnswer =
  | { readonly allowed: true; readonly reason: string }
  | { readonly allowed: false; readonly reason: string };

/** A rule in the form of a SelfSubjectRulesReview. */
export interface AccessRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
}

export const NODES_GROUP = 'system:nodes';
export const NODE_USER_PREFIX = 'system:node:';

export type NodeIdentity =
  | { readonly kind: 'notANode' }
  | { readonly kind: 'node'; readonly nodeName: string }
  /** In the group system:nodes, but the user name does not start with system:node:. */
  | { readonly kind: 'unknownNode' };

export function nodeIdentity(user: { readonly name: string; readonly groups: readonly string[] }): NodeIdentity {
  if (!user.groups.includes(NODES_GROUP)) return { kind: 'notANode' };
  const nodeName = user.name.startsWith(NODE_USER_PREFIX) ? user.name.slice(NODE_USER_PREFIX.length) : '';
  return nodeName === '' ? { kind: 'unknownNode' } : { kind: 'node', nodeName };
}

/** Their members may do everything. */
export const ADMIN_GROUPS: ReadonlySet<string> = new Set(['system:masters', 'nodekeeper:admins']);
const VIEWER_GROUPS = new Set(['nodekeeper:viewers']);
export const BOOTSTRAPPERS_GROUP = 'system:bootstrappers';
const READING_VERBS = new Set(['get', 'list', 'watch']);

const SELF_REVIEW_RULES: readonly AccessRule[] = [
  {
    verbs: ['create'],
    apiGroups: ['authorization.k8s.io'],
    resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
  },
  { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
];

interface NodeRule {
  readonly group: string;
  /** `resource` or `resource/subresource`. */
  readonly resource: string;
  readonly verbs: readonly string[];
  /**
   * This field must limit the request to the node itself. `reference`: a pod of the node must refer to the object,
   * which authorizer.ts checks. Absent: no such limit.
   */
  readonly own?: 'name' | 'spec.nodeName' | 'reference';
}

const READ = ['get', 'list', 'watch'];

/**
 * Upstream's role system:node, for the resources of this API. As with upstream's node authorizer, a node may read only
 * itself, its own pods, and what they refer to.
 * Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go (NodeRules), plugin/pkg/auth/authorizer/node.
 */
const NODE_RULES: readonly NodeRule[] = [
  { group: '', resource: 'nodes', verbs: ['create', 'get', 'list', 'watch', 'update', 'patch'], own: 'name' },
  { group: '', resource: 'nodes/status', verbs: ['update', 'patch'], own: 'name' },
  {
    group: 'coordination.k8s.io',
    resource: 'leases',
    verbs: ['create', 'get', 'update', 'patch', 'delete'],
    own: 'name',
  },
  { group: 'storage.k8s.io', resource: 'csinodes', verbs: ['create', 'get', 'update', 'patch', 'delete'], own: 'name' },
  { group: '', resource: 'pods', verbs: READ, own: 'spec.nodeName' },
  { group: '', resource: 'pods', verbs: ['create', 'delete'] },
  { group: '', resource: 'pods/status', verbs: ['update', 'patch'] },
  { group: '', resource: 'pods/eviction', verbs: ['create'] },
  { group: '', resource: 'events', verbs: ['create', 'update', 'patch'] },
  { group: 'events.k8s.io', resource: 'events', verbs: ['create', 'update', 'patch'] },
  { group: 'storage.k8s.io', resource: 'volumeattachments', verbs: ['get'] },
  { group: '', resource: 'secrets', verbs: READ, own: 'reference' },
  { group: '', resource: 'configmaps', verbs: READ, own: 'reference' },
  { group: '', resource: 'serviceaccounts/token', verbs: ['create'], own: 'reference' },
  { group: '', resource: 'persistentvolumeclaims', verbs: ['get'], own: 'reference' },
  { group: '', resource: 'persistentvolumes', verbs: ['get'], own: 'reference' },
  // Of the local provisioner, on the node itself: node-restriction.ts.
  { group: '', resource: 'persistentvolumes', verbs: ['create', 'delete'] },
  { group: '', resource: 'services', verbs: READ },
  { group: '', resource: 'endpoints', verbs: ['get'] },
  // As upstream's role system:node-proxier: an agent routes Services itself, and enforces NetworkPolicies.
  { group: 'discovery.k8s.io', resource: 'endpointslices', verbs: ['list', 'watch'] },
  { group: 'networking.k8s.io', resource: 'networkpolicies', verbs: ['list', 'watch'] },
  { group: 'nodekeeper.dev', resource: 'changereads', verbs: ['create'] },
  { group: 'node.k8s.io', resource: 'runtimeclasses', verbs: READ },
  // A kubelet asks these about the callers of its own API.
  { group: 'authentication.k8s.io', resource: 'tokenreviews', verbs: ['create'] },
  { group: 'authorization.k8s.io', resource: 'subjectaccessreviews', verbs: ['create'] },
  { group: 'authorization.k8s.io', resource: 'localsubjectaccessreviews', verbs: ['create'] },
  { group: 'storage.k8s.io', resource: 'csidrivers', verbs: READ },
  // A kubelet renews its client certificate. admit-signing-request.ts limits how many it may have.
  { group: 'certificates.k8s.io', resource: 'certificatesigningrequests', verbs: ['create', ...READ] },
  { group: 'nodekeeper.dev', resource: 'nodeidentities', verbs: ['create', 'get'], own: 'name' },
  // A relay sends them. Each item of a batch has the token of its own node.
  { group: 'nodekeeper.dev', resource: 'leasebatches', verbs: ['create'] },
  { group: 'nodekeeper.dev', resource: 'nodelogs', verbs: ['get', 'update'], own: 'name' },
  { group: 'nodekeeper.dev', resource: 'nodevolumes', verbs: ['get', 'update', 'delete'], own: 'name' },
  { group: 'nodekeeper.dev', resource: 'nodesessions', verbs: ['get'], own: 'name' },
  { group: 'nodekeeper.dev', resource: 'nodeupdates', verbs: ['update'], own: 'name' },
];

/** Subresources that open a connection to a pod or a node, by a GET. */
const CONNECTING = new Set(['attach', 'exec', 'portforward', 'proxy']);

type Viewed = Pick<AccessQuestion, 'verb' | 'group' | 'resource'> & { readonly subresource?: string };

/** Upstream's role view grants no access to Secrets. A question about `*` includes them. */
const mayView = ({ verb, group, resource, subresource = '' }: Viewed): boolean =>
  READING_VERBS.has(verb) &&
  group !== '*' &&
  resource !== '*' &&
  !(group === '' && resource === 'secrets') &&
  !CONNECTING.has(subresource);

const isAuthenticated = ({ groups }: UserInfo): boolean => groups.includes('system:authenticated');

export function authorize(user: UserInfo, question: AccessQuestion): AccessAnswer {
  if (user.extra?.[BEAT_ONLY_EXTRA] !== undefined && !isRenewal(question)) {
    return { allowed: false, reason: 'its token is for renewing the lease of its node only' };
  }
  if (user.groups.some((group) => ADMIN_GROUPS.has(group))) return { allowed: true, reason: 'admin' };
  if (isSelfReview(question) && isAuthenticated(user)) return { allowed: true, reason: 'self review' };
  if (user.groups.some((group) => VIEWER_GROUPS.has(group)) && mayView(question)) {
    return { allowed: true, reason: 'viewer' };
  }
  if (user.groups.includes(PROBE_GROUP) && isProbeLease(question)) return { allowed: true, reason: 'probe' };
  if (user.groups.includes(BOOTSTRAPPERS_GROUP) && isBootstrap(question)) return { allowed: true, reason: 'bootstrap' };
  const identity = nodeIdentity({ name: user.username, groups: user.groups });
  return identity.kind === 'notANode' ? { allowed: false, reason: '' } : authorizeAsNode(identity, question);
}

const isRenewal = ({ verb, group, resource, subresource }: AccessQuestion): boolean =>
  (verb === 'update' || verb === 'patch') &&
  group === 'coordination.k8s.io' &&
  resource === 'leases' &&
  subresource === '';

const isSelfReview = ({ verb, group, resource, subresource }: AccessQuestion): boolean =>
  verb === 'create' &&
  subresource === '' &&
  SELF_REVIEW_RULES.some((rule) => rule.apiGroups.includes(group) && rule.resources.includes(resource));

/** Metrics name every node and pod: they are for those who may read all of them. */
export const METRICS_PATH = '/metrics';
/** Upstream's role system:discovery. Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go. */
const DISCOVERY_PATHS = [
  '/api',
  '/api/*',
  '/apis',
  '/apis/*',
  '/healthz',
  '/livez',
  '/openapi',
  '/openapi/*',
  '/readyz',
  '/version',
  '/version/',
];

const isDiscovery = (path: string): boolean =>
  DISCOVERY_PATHS.some((each) => each === path || (each.endsWith('*') && path.startsWith(each.slice(0, -1))));

/** Paths that are not resources. A HEAD is authorized as its GET. */
export function authorizePath(
  user: UserInfo,
  { verb, path }: { readonly verb: string; readonly path: string },
): AccessAnswer {
  if (user.groups.some((group) => ADMIN_GROUPS.has(group))) return { allowed: true, reason: 'admin' };
  const isRead = verb === 'get' || verb === 'head';
  if (isRead && isDiscovery(path) && isAuthenticated(user)) return { allowed: true, reason: 'discovery' };
  if (isRead && path === METRICS_PATH && user.groups.some((group) => VIEWER_GROUPS.has(group))) {
    return { allowed: true, reason: 'viewer' };
  }
  return { allowed: false, reason: '' };
}

/** The built-in rules of a user for paths, for `kubectl auth can-i --list`. */
export function pathRulesFor(user: UserInfo): { verbs: readonly string[]; nonResourceURLs: readonly string[] }[] {
  if (user.groups.some((group) => ADMIN_GROUPS.has(group))) return [{ verbs: ['*'], nonResourceURLs: ['*'] }];
  const urls = isAuthenticated(user) ? [...DISCOVERY_PATHS] : [];
  if (user.groups.some((group) => VIEWER_GROUPS.has(group))) urls.push(METRICS_PATH);
  return urls.length === 0 ? [] : [{ verbs: ['get'], nonResourceURLs: urls }];
}

/**
 * The built-in rules of a user for resources.
 *
 * @param viewerRules the rules of the group nodekeeper:viewers, which depend on the kinds that are served
 */
export function rulesFor(user: UserInfo, viewerRules: readonly AccessRule[]): readonly AccessRule[] {
  const rules: AccessRule[] = [...rulesToGrant(user, viewerRules)];
  const identity = nodeIdentity({ name: user.username, groups: user.groups });
  if (identity.kind === 'node') {
    for (const { group, resource, verbs, own } of NODE_RULES) {
      const names = own === 'name' ? { resourceNames: [identity.nodeName] } : {};
      rules.push({ verbs, apiGroups: [group], resources: [resource], ...names });
    }
  }
  if (user.groups.includes(BOOTSTRAPPERS_GROUP)) {
    rules.push({ verbs: ['create'], apiGroups: ['nodekeeper.dev'], resources: ['nodeidentities'] });
  }
  return rules;
}

/** The built-in rules that a user holds without further limit. Only these may be granted to others. */
export function rulesToGrant(user: UserInfo, viewerRules: readonly AccessRule[]): readonly AccessRule[] {
  const rules: AccessRule[] = [];
  if (user.groups.some((group) => ADMIN_GROUPS.has(group))) {
    rules.push({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] });
  }
  if (user.groups.some((group) => VIEWER_GROUPS.has(group))) rules.push(...viewerRules);
  if (isAuthenticated(user)) rules.push(...SELF_REVIEW_RULES);
  return rules;
}

/**
 * Node name of a user with only the permissions of a node. Undefined for users who may read everything, or are not
 * nodes.
 */
export function readsAsNode(user: UserInfo): string | undefined {
  if (user.groups.some((group) => ADMIN_GROUPS.has(group) || VIEWER_GROUPS.has(group))) return undefined;
  const identity = nodeIdentity({ name: user.username, groups: user.groups });
  return identity.kind === 'node' ? identity.nodeName : undefined;
}

/** True for resources that a node may read only if one of its pods refers to the object. */
const isReferenced = ({ group, resource, subresource = '' }: Viewed): boolean => {
  const named = subresource === '' ? resource : `${resource}/${subresource}`;
  return NODE_RULES.some((rule) => rule.own === 'reference' && rule.group === group && rule.resource === named);
};

/**
 * Name of the node to which the object of a request must be related. Undefined if the user may read the object for
 * another reason.
 */
export function readsByReference(user: UserInfo, question: Viewed): string | undefined {
  // A node creates and deletes volumes of its own: node-restriction.ts.
  const isOwnVolume = question.resource === 'persistentvolumes' && !READING_VERBS.has(question.verb);
  if (!isReferenced(question) || isOwnVolume || user.groups.some((group) => ADMIN_GROUPS.has(group))) return undefined;
  if (user.groups.some((group) => VIEWER_GROUPS.has(group)) && mayView(question)) return undefined;
  const identity = nodeIdentity({ name: user.username, groups: user.groups });
  return identity.kind === 'node' ? identity.nodeName : undefined;
}

function isProbeLease({ verb, group, resource, subresource, namespace, name }: AccessQuestion): boolean {
  if (group !== 'coordination.k8s.io' || resource !== 'leases' || subresource !== '') return false;
  if (namespace !== LEASE_NAMESPACE) return false;
  // A create names its Lease in the body; restrict-node.ts checks it.
  return verb === 'create' || ((verb === 'update' || verb === 'patch' || verb === 'get') && name === PROBE_LEASE);
}

const isBootstrap = ({ verb, group, resource, subresource }: AccessQuestion): boolean =>
  verb === 'create' && group === 'nodekeeper.dev' && resource === 'nodeidentities' && subresource === '';

function authorizeAsNode(
  identity: Exclude<NodeIdentity, { kind: 'notANode' }>,
  question: AccessQuestion,
): AccessAnswer {
  const refused = (reason: string): AccessAnswer => ({ allowed: false, reason });
  if (identity.kind === 'unknownNode') return refused('unknown node for user');
  const { nodeName } = identity;
  const { verb, group, namespace, name } = question;
  const resource = question.subresource === '' ? question.resource : `${question.resource}/${question.subresource}`;
  const rule = NODE_RULES.find(
    (each) => each.group === group && each.resource === resource && each.verbs.includes(verb),
  );
  if (rule === undefined) {
    if (resource === 'serviceaccounts/token') return refused('can only create tokens for individual service accounts');
    return refused(isReferenced(question) ? 'can only read resources of this type' : '');
  }
  const allowed: AccessAnswer = { allowed: true, reason: 'node' };
  switch (rule.own) {
    case undefined:
      return allowed;
    case 'name': {
      if (resource === 'leases' && namespace !== LEASE_NAMESPACE) {
        return refused(`can only access leases in the "${LEASE_NAMESPACE}" system namespace`);
      }
      // A create names its object in the body; restrict-node.ts checks it.
      const requestedName = name !== '' || verb === 'create' ? name : (question.exactField?.('metadata.name') ?? '');
      if (requestedName === nodeName || (verb === 'create' && requestedName === '')) return allowed;
      return refused(`node '${nodeName}' can only access ${resource} of its own name`);
    }
    case 'spec.nodeName':
      // The request for a single pod does not contain the node name; refuseForeign checks the pod.
      if (verb === 'get' || question.exactField?.('spec.nodeName') === nodeName) return allowed;
      return refused(`can only list/watch pods with spec.nodeName field selector`);
    case 'reference':
      if (verb === 'get') return allowed;
      if (verb === 'create') {
        return name === '' ? refused('can only create tokens for individual service accounts') : allowed;
      }
      // A list or watch must name one object in one namespace.
      if (namespace === '') return refused('can only read namespaced object of this type');
      return (question.exactField?.('metadata.name') ?? '') === '' ? refused('No Object name found') : allowed;
    default:
      return rule.own satisfies never;
  }
}
