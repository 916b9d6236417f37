import { defined } from '../../defined.ts';
import { withTaintTimes } from '../../fleet/nodes/taint.ts';
import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, NONE, nameColumn, textColumn, UNKNOWN } from '../../kubernetes/columns.ts';
import { freshMetadata, inheritMetadata, typed, withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { canonicalQuantity } from '../../kubernetes/quantity.ts';
import { canonicalTime } from '../../kubernetes/time.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import type { KubeNode, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, ResourceList, Taint } from '../types.ts';
import { NODES } from './resource.ts';
import { nodeStatusText } from './row.ts';
import { validateNode } from './validate.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';

const NODE_INFO_FIELDS = [
  'machineID',
  'systemUUID',
  'bootID',
  'kernelVersion',
  'osImage',
  'containerRuntimeVersion',
  'kubeletVersion',
  'kubeProxyVersion',
  'operatingSystem',
  'architecture',
];

/**
 * podCIDR is the first of podCIDRs. If they differ, podCIDR counts, because old clients know only that field.
 */
function alignPodCidrs(spec: NodeSpec): NodeSpec {
  const { podCIDR: single, podCIDRs: list = [], ...rest } = spec;
  const podCIDRs = single && list[0] !== single ? [single] : list;
  const [podCIDR] = podCIDRs;
  return podCIDR === undefined ? rest : { ...rest, podCIDR, podCIDRs };
}

function storedTaint(taint: Taint): Taint {
  const tidy = withoutEmpty(taint, 'value');
  return tidy.timeAdded === undefined ? tidy : { ...tidy, timeAdded: canonicalTime(tidy.timeAdded) };
}

function storedSpec(given: NodeSpec | undefined): NodeSpec {
  const spec = alignPodCidrs(withoutNulls(given ?? {}));
  return withoutEmpty(
    spec.taints === undefined ? spec : { ...spec, taints: spec.taints.map(storedTaint) },
    'taints',
    'unschedulable',
    'providerID',
    'externalID',
  );
}

const canonicalQuantities = (amounts: ResourceList): ResourceList =>
  Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, canonicalQuantity(value)]));

const timeOrNull = (value: unknown): string | null => (typeof value === 'string' ? canonicalTime(value) : null);

function storedCondition(condition: NodeCondition): NodeCondition {
  return {
    ...withoutEmpty(condition, 'reason', 'message'),
    lastHeartbeatTime: timeOrNull(condition.lastHeartbeatTime),
    lastTransitionTime: timeOrNull(condition.lastTransitionTime),
  };
}

function storedStatus(given: NodeStatus | undefined): NodeStatus {
  const status = withoutNulls(given ?? {});
  const capacity = status.capacity && canonicalQuantities(status.capacity);
  // Pods may use all resources of a node that reports only its capacity.
  const allocatable = status.allocatable ? canonicalQuantities(status.allocatable) : capacity;
  return withoutEmpty(
    {
      ...status,
      ...defined({ capacity, allocatable }),
      conditions: (status.conditions ?? []).map(storedCondition),
      daemonEndpoints: { kubeletEndpoint: { Port: 0, ...status.daemonEndpoints?.kubeletEndpoint } },
      nodeInfo: { ...Object.fromEntries(NODE_INFO_FIELDS.map((field) => [field, ''])), ...status.nodeInfo },
    },
    'capacity',
    'allocatable',
    'conditions',
    'addresses',
    'images',
    'volumesInUse',
    'volumesAttached',
    'phase',
    'runtimeHandlers',
    'declaredFeatures',
  );
}

/**
 * NoExecute taints with the server's time in `timeAdded`. Evictions count from it, so no client may set it. It is set
 * in the write that adds the taint: a later write by a stream consumer would leave the taint without a time until then.
 */
function stampTaints(spec: NodeSpec, old: NodeSpec | undefined, nowMs: number): NodeSpec {
  const { taints } = spec;
  return taints === undefined ? spec : { ...spec, taints: [...withTaintTimes(old?.taints ?? [], taints, nowMs)] };
}

/** Every new node has the taint not-ready:NoSchedule until it is Ready (plugin/pkg/admission/nodetaint). */
function admitTaint(spec: NodeSpec): NodeSpec {
  const taints = spec.taints ?? [];
  if (taints.some((taint) => taint.key === NOT_READY && taint.effect === 'NoSchedule')) return spec;
  return { ...spec, taints: [...taints, { effect: 'NoSchedule', key: NOT_READY }] };
}

/** Roles by label, sorted; kubectl's ROLES column. */
export function nodeRoles(labels: Readonly<Record<string, string>> | undefined): string[] {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(labels ?? {})) {
    if (key.startsWith(ROLE_PREFIX) && key.length > ROLE_PREFIX.length) roles.add(key.slice(ROLE_PREFIX.length));
    else if (key === ROLE_LABEL && value !== '') roles.add(value);
  }
  return [...roles].sort();
}

const addressCell = (node: KubeNode, type: string): string =>
  (node.status?.addresses ?? []).find((address) => address.type === type)?.address ?? NONE;

const infoCell = (node: KubeNode, field: Exclude<keyof NodeSystemInfo, 'swap'>): string => {
  const value = node.status?.nodeInfo?.[field] ?? '';
  return value === '' ? UNKNOWN : value;
};

export const nodes: ResourceDescriptor = {
  ...NODES,
  singular: 'node',
  listKind: 'NodeList',
  shortNames: ['no'],
  categories: [],
  subresources: [{ name: 'status', verbs: ['get', 'patch', 'update'] }],
  columns: [
    nameColumn,
    textColumn('Status', 'Ready or not, and whether new pods may be placed.'),
    textColumn('Roles', 'Roles by the node-role labels.'),
    ageColumn,
    textColumn('Version', 'Version of the kubelet.'),
    textColumn('Internal-IP', 'First address of type InternalIP.', 1),
    textColumn('External-IP', 'First address of type ExternalIP.', 1),
    textColumn('OS-Image', 'Operating system as the node reports it.', 1),
    textColumn('Kernel-Version', 'Kernel as the node reports it.', 1),
    textColumn('Container-Runtime', 'Container runtime and its version.', 1),
  ],
  row(node: KubeNode, nowMs) {
    const roles = nodeRoles(node.metadata.labels);
    return [
      node.metadata.name ?? '',
      nodeStatusText(node),
      roles.length === 0 ? NONE : roles.join(','),
      ageSince(node.metadata.creationTimestamp, nowMs),
      node.status?.nodeInfo?.['kubeletVersion'] ?? '',
      addressCell(node, 'InternalIP'),
      addressCell(node, 'ExternalIP'),
      infoCell(node, 'osImage'),
      infoCell(node, 'kernelVersion'),
      infoCell(node, 'containerRuntimeVersion'),
    ];
  },
  unconditionalUpdate: true,
  createOnUpdate: false,
  hasGeneration: false,
  prepareForCreate(object, { nowMs }) {
    return typed('', 'v1', 'Node', {
      ...object,
      metadata: freshMetadata(object.metadata),
      spec: admitTaint(stampTaints(storedSpec(object.spec), undefined, nowMs)),
      // Kept, unlike other kinds: a kubelet registers with its status.
      status: storedStatus(object.status),
    });
  },
  prepareForUpdate(next, old, { subresource, nowMs }) {
    return typed('', 'v1', 'Node', {
      ...next,
      metadata: inheritMetadata(next.metadata, old.metadata),
      spec: subresource === 'status' ? (old.spec ?? {}) : stampTaints(storedSpec(next.spec), old.spec, nowMs),
      status: subresource === 'status' ? storedStatus(next.status) : (old.status ?? storedStatus(undefined)),
    });
  },
  validate: (object, { old }) => validateNode(object, old),
};
