/**
 * Metrics of single objects, with the names and labels of kube-state-metrics. Dashboards and alert rules made for it
 * work unchanged. Source: kube-state-metrics, docs/metrics (node, pod, lease, deployment).
 */

import type {
  KubeNode,
  KubeObject,
  KubePod,
  LeaseSpec,
  NodeSystemInfo,
  PodPhase,
  ResourceList,
} from '../../../shared/kinds/types.ts';
import { parseQuantity } from '../../../shared/kubernetes/quantity.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import type { MetricFamily, Sample } from './open-metrics.ts';

const NANOS_PER_UNIT = 1_000_000_000;
const CONDITION_STATUSES = ['true', 'false', 'unknown'] as const;
const PHASES: readonly PodPhase[] = ['Pending', 'Succeeded', 'Failed', 'Unknown', 'Running'];

export function nodeFamilies(nodes: readonly KubeNode[]): readonly MetricFamily[] {
  return [
    gauge('kube_node_info', 'Information about a cluster node.', nodes.map(nodeInfo)),
    gauge('kube_node_created', 'Unix creation timestamp.', nodes.flatMap(nodeCreated)),
    gauge(
      'kube_node_spec_unschedulable',
      'Whether a node can schedule new pods.',
      nodes.map((node) => ({ labels: { node: nameOf(node) }, value: node.spec?.unschedulable === true ? 1 : 0 })),
    ),
    gauge('kube_node_spec_taint', 'The taint of a cluster node.', nodes.flatMap(nodeTaints)),
    gauge('kube_node_status_condition', 'The condition of a cluster node.', nodes.flatMap(nodeConditions)),
    gauge(
      'kube_node_status_capacity',
      'The total amount of resources available for a node.',
      nodes.flatMap((node) => amounts(nameOf(node), node.status?.capacity)),
    ),
    gauge(
      'kube_node_status_allocatable',
      'The amount of resources allocatable for pods (after reserving some for system daemons).',
      nodes.flatMap((node) => amounts(nameOf(node), node.status?.allocatable)),
    ),
  ];
}

export function podFamilies(pods: readonly KubePod[]): readonly MetricFamily[] {
  return [
    gauge('kube_pod_info', 'Information about pod.', pods.map(podInfo)),
    gauge('kube_pod_status_phase', 'The pods current phase.', pods.flatMap(podPhases)),
  ];
}

export function leaseFamilies(leases: readonly KubeObject[]): readonly MetricFamily[] {
  const specs = leases.map((lease) => ({ lease, spec: (lease.spec ?? {}) as LeaseSpec }));
  return [
    gauge(
      'kube_lease_owner',
      "Information about the Lease's owner.",
      specs.flatMap(({ lease, spec }) =>
        (lease.metadata.ownerReferences ?? []).map(({ kind, name }) => ({
          labels: {
            lease: nameOf(lease),
            namespace: namespaceOf(lease),
            owner_kind: kind,
            owner_name: name,
            lease_holder: spec.holderIdentity ?? '',
          },
          value: 1,
        })),
      ),
    ),
    gauge(
      'kube_lease_renew_time',
      'Kube lease renew time.',
      specs.flatMap(({ lease, spec }) => {
        const renewedAtMs = parseTimeMs(spec.renewTime);
        if (renewedAtMs === undefined) return [];
        return [{ labels: { lease: nameOf(lease), namespace: namespaceOf(lease) }, value: renewedAtMs / 1_000 }];
      }),
    ),
  ];
}

const DEPLOYMENT_STATUS: readonly (readonly [string, string, string])[] = [
  ['kube_deployment_status_replicas', 'replicas', 'The number of replicas per deployment.'],
  ['kube_deployment_status_replicas_ready', 'readyReplicas', 'The number of ready replicas per deployment.'],
  [
    'kube_deployment_status_replicas_available',
    'availableReplicas',
    'The number of available replicas per deployment.',
  ],
  [
    'kube_deployment_status_replicas_unavailable',
    'unavailableReplicas',
    'The number of unavailable replicas per deployment.',
  ],
  ['kube_deployment_status_replicas_updated', 'updatedReplicas', 'The number of updated replicas per deployment.'],
];

export function deploymentFamilies(deployments: readonly KubeObject[]): readonly MetricFamily[] {
  const labelsOf = (deployment: KubeObject) => ({
    namespace: namespaceOf(deployment),
    deployment: nameOf(deployment),
  });
  return [
    gauge(
      'kube_deployment_spec_replicas',
      'Number of desired pods for a deployment.',
      deployments.map((each) => ({ labels: labelsOf(each), value: countIn(each.spec, 'replicas', 1) })),
    ),
    ...DEPLOYMENT_STATUS.map(([name, field, help]) =>
      gauge(
        name,
        help,
        deployments.map((each) => ({ labels: labelsOf(each), value: countIn(each.status, field, 0) })),
      ),
    ),
  ];
}

const countIn = (part: Record<string, unknown> | undefined, field: string, absent: number): number =>
  typeof part?.[field] === 'number' ? part[field] : absent;

const gauge = (name: string, help: string, samples: readonly Sample[]): MetricFamily => ({
  name,
  help,
  type: 'gauge',
  samples,
});

const nameOf = ({ metadata }: KubeObject): string => metadata.name ?? '';
const namespaceOf = ({ metadata }: KubeObject): string => metadata.namespace ?? '';

function nodeInfo(node: KubeNode): Sample {
  const { nodeInfo: info = {}, addresses = [] } = node.status ?? {};
  const text = (field: Exclude<keyof NodeSystemInfo, 'swap'>): string => info[field] ?? '';
  return {
    labels: {
      node: nameOf(node),
      kernel_version: text('kernelVersion'),
      os_image: text('osImage'),
      container_runtime_version: text('containerRuntimeVersion'),
      kubelet_version: text('kubeletVersion'),
      kubeproxy_version: text('kubeProxyVersion'),
      provider_id: node.spec?.providerID ?? '',
      pod_cidr: node.spec?.podCIDR ?? '',
      system_uuid: text('systemUUID'),
      internal_ip: addresses.find(({ type }) => type === 'InternalIP')?.address ?? '',
    },
    value: 1,
  };
}

function nodeCreated(node: KubeNode): readonly Sample[] {
  const createdAtMs = parseTimeMs(node.metadata.creationTimestamp);
  return createdAtMs === undefined ? [] : [{ labels: { node: nameOf(node) }, value: createdAtMs / 1_000 }];
}

const nodeTaints = (node: KubeNode): readonly Sample[] =>
  (node.spec?.taints ?? []).map(({ key, value = '', effect }) => ({
    labels: { node: nameOf(node), key, value, effect },
    value: 1,
  }));

const nodeConditions = (node: KubeNode): readonly Sample[] =>
  (node.status?.conditions ?? []).flatMap((condition) =>
    CONDITION_STATUSES.map((status) => ({
      labels: { node: nameOf(node), condition: condition.type, status },
      value: condition.status.toLowerCase() === status ? 1 : 0,
    })),
  );

/** Resource names become label values of letters, digits and underscores, as in kube-state-metrics. */
function amounts(node: string, resources: ResourceList = {}): readonly Sample[] {
  return Object.entries(resources).flatMap(([name, text]) => {
    const unit = unitOf(name);
    const parsed = parseQuantity(text);
    if (unit === undefined || parsed.kind !== 'parsed') return [];
    const labels = { node, resource: name.replace(/[^a-zA-Z0-9_]/g, '_'), unit };
    return [{ labels, value: Number(parsed.quantity.nanos) / NANOS_PER_UNIT }];
  });
}

/** Undefined: a resource that kube-state-metrics leaves out. */
function unitOf(name: string): string | undefined {
  if (name === 'cpu') return 'core';
  if (name === 'memory' || name === 'storage' || name === 'ephemeral-storage') return 'byte';
  if (name.startsWith('hugepages-') || name.startsWith('attachable-volumes-')) return 'byte';
  if (name === 'pods' || name.includes('/')) return 'integer';
  return undefined;
}

function podInfo(pod: KubePod): Sample {
  const creator = (pod.metadata.ownerReferences ?? []).find(({ controller }) => controller === true);
  return {
    labels: {
      ...podLabels(pod),
      host_ip: pod.status?.hostIP ?? '',
      pod_ip: pod.status?.podIP ?? '',
      node: pod.spec?.nodeName ?? '',
      created_by_kind: creator?.kind ?? '',
      created_by_name: creator?.name ?? '',
      priority_class: pod.spec?.priorityClassName ?? '',
      host_network: String(pod.spec?.hostNetwork === true),
    },
    value: 1,
  };
}

const podLabels = ({ metadata }: KubePod) => ({
  namespace: metadata.namespace ?? '',
  pod: metadata.name ?? '',
  uid: metadata.uid ?? '',
});

function podPhases(pod: KubePod): readonly Sample[] {
  const phase = pod.status?.phase;
  if (phase === undefined) return [];
  return PHASES.map((each) => ({ labels: { ...podLabels(pod), phase: each }, value: each === phase ? 1 : 0 }));
}
