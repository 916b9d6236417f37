/**
 * The ClusterRoles and ClusterRoleBindings that every cluster has. They are not stored: they cannot be changed or
 * deleted, and reads add them. Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, for the groups and
 * resources of this API.
 */
import { SITE_MOVES } from '../../agents/site-move.ts';
import { textHash } from '../../text.ts';
import { CHANGE_READS } from '../../watches/change-read.ts';
import type { KubeClusterRole, KubeRoleBinding, PolicyRule, Subject } from '../types.ts';
import { ALL, FULL_AUTHORITY } from './policy-rule.ts';
import { RBAC_GROUP } from './resource.ts';

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];
const READ_UPDATE = [...READ, 'patch', 'update'];
const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';
const CERTIFICATES = 'certificates.k8s.io';
const COORDINATION = 'coordination.k8s.io';
const DISCOVERY = 'discovery.k8s.io';
const NETWORKING = 'networking.k8s.io';
const STORAGE = 'storage.k8s.io';

const list = (text: string): string[] => text.split(' ');

/** @param resources plural names, separated by a space */
const rule = (verbs: readonly string[], group: string, resources: string, names?: string): PolicyRule => ({
  verbs: verbs.toSorted(),
  apiGroups: [group],
  resources: list(resources),
  ...(names === undefined ? {} : { resourceNames: list(names) }),
});
const paths = (urls: string): PolicyRule => ({ verbs: ['get'], nonResourceURLs: list(urls) });

const EVENTS: readonly PolicyRule[] = [
  rule(['create', 'patch', 'update'], '', 'events'),
  rule(['create', 'patch', 'update'], 'events.k8s.io', 'events'),
];

/** A component asks these about its own callers. */
const DELEGATION: readonly PolicyRule[] = [
  rule(['create'], AUTHENTICATION, 'tokenreviews'),
  rule(['create'], AUTHORIZATION, 'subjectaccessreviews'),
];

/** Leader election of a component. */
const leaderElection = (name: string): readonly PolicyRule[] => [
  rule(['create'], COORDINATION, 'leases'),
  rule(['get', 'list', 'update', 'watch'], COORDINATION, 'leases', name),
  rule(['create'], '', 'endpoints'),
  rule(['get', 'update'], '', 'endpoints', name),
];

const DISCOVERY_URLS = '/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/';

const VIEWED: readonly PolicyRule[] = [
  rule(
    READ,
    '',
    'configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers ' +
      'replicationcontrollers/scale serviceaccounts services services/status',
  ),
  rule(
    READ,
    '',
    'bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas ' +
      'resourcequotas/status',
  ),
  rule(READ, '', 'namespaces'),
  rule(READ, DISCOVERY, 'endpointslices'),
  rule(
    READ,
    'apps',
    'controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets ' +
      'replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status',
  ),
  rule(READ, 'autoscaling', 'horizontalpodautoscalers horizontalpodautoscalers/status'),
  rule(READ, 'batch', 'cronjobs cronjobs/status jobs jobs/status'),
  rule(READ, 'policy', 'poddisruptionbudgets poddisruptionbudgets/status'),
  rule(READ, NETWORKING, 'ingresses ingresses/status networkpolicies'),
];

const EDITED: readonly PolicyRule[] = [
  rule(READ, '', 'pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy'),
  rule(['impersonate'], '', 'serviceaccounts'),
  rule(WRITE, '', 'pods pods/attach pods/exec pods/portforward pods/proxy'),
  rule(['create'], '', 'pods/eviction'),
  rule(
    WRITE,
    '',
    'configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets ' +
      'serviceaccounts services services/proxy',
  ),
  rule(['create'], '', 'serviceaccounts/token'),
  rule(
    WRITE,
    'apps',
    'daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets ' +
      'statefulsets/scale',
  ),
  rule(WRITE, 'autoscaling', 'horizontalpodautoscalers'),
  rule(WRITE, 'batch', 'cronjobs jobs'),
  rule(WRITE, 'policy', 'poddisruptionbudgets'),
  rule(WRITE, NETWORKING, 'ingresses networkpolicies'),
  rule([...WRITE, ...READ], COORDINATION, 'leases'),
];

const NODE: readonly PolicyRule[] = [
  ...DELEGATION,
  rule(['create'], AUTHORIZATION, 'localsubjectaccessreviews'),
  rule(READ, '', 'services'),
  rule(['create', ...READ], '', 'nodes'),
  rule(['patch', 'update'], '', 'nodes nodes/status'),
  ...EVENTS,
  rule(READ, '', 'pods'),
  rule(['create', 'delete'], '', 'pods'),
  rule(['patch', 'update'], '', 'pods/status'),
  rule(['create'], '', 'pods/eviction'),
  rule(READ, '', 'configmaps secrets'),
  rule(['get'], '', 'endpoints persistentvolumeclaims persistentvolumes'),
  rule(['create', 'delete', 'get', 'patch', 'update'], COORDINATION, 'leases'),
  rule(['get'], STORAGE, 'volumeattachments'),
  rule(['create'], '', 'serviceaccounts/token'),
  rule(READ, STORAGE, 'csidrivers'),
  rule(['create', 'delete', 'get', 'patch', 'update'], STORAGE, 'csinodes'),
  rule(READ, 'node.k8s.io', 'runtimeclasses'),
  rule(['create', ...READ], CERTIFICATES, 'certificatesigningrequests'),
];

const SCHEDULER: readonly PolicyRule[] = [
  ...EVENTS,
  ...leaderElection('kube-scheduler'),
  rule(READ, '', 'nodes namespaces'),
  rule(['delete', ...READ], '', 'pods'),
  rule(['create'], '', 'bindings pods/binding'),
  rule(['patch', 'update'], '', 'pods/status'),
  rule(READ, '', 'persistentvolumeclaims persistentvolumes replicationcontrollers services'),
  rule(READ, 'apps', 'replicasets statefulsets'),
  rule(READ, 'policy', 'poddisruptionbudgets'),
  ...DELEGATION,
  rule(READ, STORAGE, 'csidrivers csinodes csistoragecapacities volumeattachments'),
];

const CONTROLLER_MANAGER: readonly PolicyRule[] = [
  ...EVENTS,
  ...leaderElection('kube-controller-manager'),
  rule(['create'], '', 'secrets serviceaccounts'),
  rule(['delete'], '', 'secrets'),
  rule(['get'], '', 'configmaps namespaces secrets serviceaccounts'),
  rule(['update'], '', 'secrets serviceaccounts'),
  ...DELEGATION,
  rule(['list', 'watch'], ALL, ALL),
  rule(['create'], '', 'serviceaccounts/token'),
];

const aggregatesTo = (role: string) => ({ [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true' });

/** Deterministic: the same role has the same uid in every process. */
const uidOf = (name: string): string => {
  const [one, two, three] = ['a', 'b', 'c'].map((part) => textHash(`${part}/${name}`).toString(16).padStart(8, '0'));
  return `${one}-${two?.slice(0, 4)}-4${two?.slice(4, 7)}-8${three?.slice(0, 3)}-${three}${one?.slice(0, 4)}`;
};

/** Creation time of all default objects. */
const CREATED = '2026-01-01T00:00:00Z';

const metadata = (kind: string, name: string, labels: Record<string, string> = {}) => ({
  name,
  uid: uidOf(`${kind}/${name}`),
  resourceVersion: '1',
  creationTimestamp: CREATED,
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
  annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
});

const role = (name: string, rules: readonly PolicyRule[], labels?: Record<string, string>): KubeClusterRole => ({
  kind: 'ClusterRole',
  apiVersion: `${RBAC_GROUP}/v1`,
  metadata: metadata('ClusterRole', name, labels),
  rules: [...rules],
});

/** A role with the rules of all roles that have the label of its name. */
const aggregated = (name: string, labels?: Record<string, string>): KubeClusterRole => ({
  ...role(name, [], labels),
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: aggregatesTo(name) }] },
});

const SIGNER = 'kubernetes.io';
const REQUESTS_ROLE = 'system:certificates.k8s.io:certificatesigningrequests';

/** What a process that keeps a copy of the cluster needs besides reading it: its changes, and who its clients are. */
const HUB: readonly PolicyRule[] = [
  // A move is refused unless a binding has assigned the pod to this hub.
  rule(['create'], CHANGE_READS.group, `${CHANGE_READS.resource} ${SITE_MOVES.resource}`),
  ...DELEGATION,
];

/** What authorizes the clients of a site, and what its pods read of the cluster. */
const SITE_HUB: readonly PolicyRule[] = [
  rule(READ, RBAC_GROUP, 'clusterrolebindings clusterroles rolebindings roles'),
  rule(READ, '', 'namespaces serviceaccounts services'),
  rule(READ, 'discovery.k8s.io', 'endpointslices'),
  rule(READ, 'node.k8s.io', 'runtimeclasses'),
  rule(READ, 'scheduling.k8s.io', 'priorityclasses'),
  rule(READ, SITE_MOVES.group, 'sitepolicies'),
];

/** Rules that depend on the kinds that are served. */
interface ServedRules {
  readonly viewer: readonly PolicyRule[];
  readonly hub: readonly PolicyRule[];
}

export function defaultClusterRoles({ viewer, hub }: ServedRules): readonly KubeClusterRole[] {
  const roles = [
    role('cluster-admin', FULL_AUTHORITY),
    aggregated('admin'),
    aggregated('edit', aggregatesTo('admin')),
    aggregated('view', aggregatesTo('edit')),
    role(
      'system:aggregate-to-admin',
      [
        rule(['create'], AUTHORIZATION, 'localsubjectaccessreviews'),
        rule([...WRITE, ...READ], RBAC_GROUP, 'rolebindings roles'),
      ],
      aggregatesTo('admin'),
    ),
    role('system:aggregate-to-edit', EDITED, aggregatesTo('edit')),
    role('system:aggregate-to-view', VIEWED, aggregatesTo('view')),
    role('system:aggregated-metrics-reader', [rule(READ, 'metrics.k8s.io', 'nodes pods')], aggregatesTo('view')),
    role('nodekeeper:viewer', viewer),
    role('system:nodekeeper:hub', [...hub, ...HUB]),
    role('system:nodekeeper:site-hub', [...SITE_HUB, ...HUB]),
    role('system:nodekeeper:hub-secrets', [rule(READ, '', 'secrets')]),
    role('system:discovery', [paths(DISCOVERY_URLS)]),
    role('system:monitoring', [paths('/healthz /healthz/* /livez /livez/* /metrics /readyz /readyz/*')]),
    role('system:basic-user', [
      rule(['create'], AUTHORIZATION, 'selfsubjectaccessreviews selfsubjectrulesreviews'),
      rule(['create'], AUTHENTICATION, 'selfsubjectreviews'),
    ]),
    role('system:public-info-viewer', [paths('/healthz /livez /readyz /version /version/')]),
    role('system:node', NODE),
    role('system:node-problem-detector', [rule(['get'], '', 'nodes'), rule(['patch'], '', 'nodes/status'), ...EVENTS]),
    role('system:node-bootstrapper', [rule(['create', ...READ], CERTIFICATES, 'certificatesigningrequests')]),
    role('system:kubelet-api-admin', [
      rule(READ, '', 'nodes'),
      rule(['proxy'], '', 'nodes'),
      rule([ALL], '', 'nodes/log nodes/metrics nodes/proxy nodes/stats'),
    ]),
    role('system:auth-delegator', DELEGATION),
    role('system:heapster', [rule(READ, '', 'events namespaces nodes pods'), rule(READ, 'apps', 'deployments')]),
    role('system:kube-aggregator', [rule(READ, '', 'endpoints services')]),
    role('system:kube-dns', [rule(['list', 'watch'], '', 'endpoints services')]),
    role('system:kube-controller-manager', CONTROLLER_MANAGER),
    role('system:kube-scheduler', SCHEDULER),
    role('system:volume-scheduler', [
      rule(READ_UPDATE, '', 'persistentvolumeclaims persistentvolumes'),
      rule(READ, STORAGE, 'storageclasses'),
    ]),
    role('system:node-proxier', [
      rule(['list', 'watch'], '', 'endpoints services'),
      rule(READ, '', 'nodes'),
      ...EVENTS,
      rule(['list', 'watch'], DISCOVERY, 'endpointslices'),
    ]),
    role('system:persistent-volume-provisioner', [
      rule(['create', 'delete', ...READ], '', 'persistentvolumes'),
      rule([...READ, 'update'], '', 'persistentvolumeclaims'),
      rule(READ, STORAGE, 'storageclasses'),
      rule(['watch'], '', 'events'),
      ...EVENTS,
    ]),
    role('system:service-account-issuer-discovery', [paths('/.well-known/openid-configuration /openid/v1/jwks')]),
    ...['nodeclient', 'selfnodeclient'].map((part) =>
      role(`${REQUESTS_ROLE}:${part}`, [rule(['create'], CERTIFICATES, `certificatesigningrequests/${part}`)]),
    ),
    ...['kube-apiserver-client', 'kube-apiserver-client-kubelet', 'kubelet-serving', 'legacy-unknown'].map((signer) =>
      role(`system:certificates.k8s.io:${signer}-approver`, [
        rule(['approve'], CERTIFICATES, 'signers', `${SIGNER}/${signer}`),
      ]),
    ),
  ];
  return roles.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

const nameOf = (object: KubeClusterRole | KubeRoleBinding): string => object.metadata.name ?? '';

const subject = (kind: 'User' | 'Group', name: string): Subject => ({ kind, apiGroup: RBAC_GROUP, name });

const binding = (name: string, subjects: readonly Subject[], roleName = name): KubeRoleBinding => ({
  kind: 'ClusterRoleBinding',
  apiVersion: `${RBAC_GROUP}/v1`,
  metadata: metadata('ClusterRoleBinding', name),
  ...(subjects.length === 0 ? {} : { subjects: [...subjects] }),
  roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: roleName },
});

const AUTHENTICATED = subject('Group', 'system:authenticated');
const SCHEDULER_USER = subject('User', 'system:kube-scheduler');

const BOOTSTRAPPERS = subject('Group', 'system:bootstrappers');

/**
 * Ordered by name. The rules of machines are in shared/access/authorize.ts, so system:node has no subject. The bindings
 * of kubelets that bootstrap are those of kubeadm (cmd/kubeadm/app/phases/bootstraptoken/node).
 */
export const defaultClusterRoleBindings: readonly KubeRoleBinding[] = [
  binding('cluster-admin', [subject('Group', 'system:masters')]),
  binding('nodekeeper:admins', [subject('Group', 'nodekeeper:admins')], 'cluster-admin'),
  binding('nodekeeper:kubelet-bootstrap', [BOOTSTRAPPERS], 'system:node-bootstrapper'),
  binding('nodekeeper:node-autoapprove-bootstrap', [BOOTSTRAPPERS], `${REQUESTS_ROLE}:nodeclient`),
  binding(
    'nodekeeper:node-autoapprove-certificate-rotation',
    [subject('Group', 'system:nodes')],
    `${REQUESTS_ROLE}:selfnodeclient`,
  ),
  binding('nodekeeper:viewers', [subject('Group', 'nodekeeper:viewers')], 'nodekeeper:viewer'),
  binding('system:basic-user', [AUTHENTICATED]),
  binding('system:discovery', [AUTHENTICATED]),
  binding('system:kube-controller-manager', [subject('User', 'system:kube-controller-manager')]),
  binding('system:kube-dns', [{ kind: 'ServiceAccount', name: 'kube-dns', namespace: 'kube-system' }]),
  binding('system:kube-scheduler', [SCHEDULER_USER]),
  binding('system:monitoring', [subject('Group', 'system:monitoring')]),
  binding('system:node', []),
  binding('system:node-proxier', [subject('User', 'system:kube-proxy')]),
  binding('system:public-info-viewer', [AUTHENTICATED, subject('Group', 'system:unauthenticated')]),
  binding('system:service-account-issuer-discovery', [subject('Group', 'system:serviceaccounts')]),
  binding('system:volume-scheduler', [SCHEDULER_USER]),
];
