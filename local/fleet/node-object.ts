/**
 * What a simulated machine writes: its Node, its status post and its Lease, as a kubelet forms them.
 * Pure; the time is an argument.
 */
import type { KubeNode, KubeObject, LeaseSpec, NodeCondition, NodeStatus } from '../../shared/kube/types.ts';
import type { MachineIdentity } from './names.ts';

/** kubelet release the machines claim to run. */
const KUBELET_VERSION = 'v1.34.2';

export const LEASE_NAMESPACE = 'kube-node-lease';

/** RFC 3339 with seconds, as metav1.Time is written. */
export const timeOf = (atMs: number): string => `${new Date(atMs).toISOString().slice(0, 19)}Z`;

/** RFC 3339 with six fraction digits, as metav1.MicroTime is written. */
export const microTimeOf = (atMs: number): string => `${new Date(atMs).toISOString().slice(0, 23)}000Z`;

/** Thirty-two hex digits that are always the same for a machine: ids of a simulated board. */
function boardId(name: string, salt: string): string {
  let digits = '';
  for (let word = 0; word < 4; word += 1) {
    let hash = 0x811c9dc5;
    for (const char of `${salt}${word}${name}`) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
    digits += (hash >>> 0).toString(16).padStart(8, '0');
  }
  return digits;
}

const uuidOf = (digits: string): string =>
  [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join('-');

/** 10.<zone>.<high>.<low>; 65,000 machines a zone before two share an address. */
export function addressOf(machine: MachineIdentity): string {
  const host = machine.index + 10;
  return `10.${16 + machine.zoneIndex}.${(host >> 8) & 255}.${host & 255}`;
}

export function labelsOf(machine: MachineIdentity, region: string): Record<string, string> {
  return {
    'beta.kubernetes.io/arch': 'arm64',
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'arm64',
    'kubernetes.io/hostname': machine.name,
    'kubernetes.io/os': 'linux',
    'topology.kubernetes.io/region': region,
    'topology.kubernetes.io/zone': machine.zone,
  };
}

/** Condition types, reasons and messages of a healthy kubelet with a network; Ready comes last as a kubelet puts it. */
const HEALTHY: readonly Required<Pick<NodeCondition, 'type' | 'status' | 'reason' | 'message'>>[] = [
  { type: 'NetworkUnavailable', status: 'False', reason: 'NetworkReady', message: 'pod network is up' },
  {
    type: 'MemoryPressure',
    status: 'False',
    reason: 'KubeletHasSufficientMemory',
    message: 'kubelet has sufficient memory available',
  },
  {
    type: 'DiskPressure',
    status: 'False',
    reason: 'KubeletHasNoDiskPressure',
    message: 'kubelet has no disk pressure',
  },
  {
    type: 'PIDPressure',
    status: 'False',
    reason: 'KubeletHasSufficientPID',
    message: 'kubelet has sufficient PID available',
  },
  { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' },
];

/** Conditions to post: a status that differs from the one found has changed now, any other keeps its transition time. */
export function conditionsAt(nowMs: number, found: readonly NodeCondition[] | undefined): NodeCondition[] {
  const now = timeOf(nowMs);
  return HEALTHY.map((wanted) => {
    const before = found?.find((condition) => condition.type === wanted.type);
    const lastTransitionTime = before?.status === wanted.status ? (before.lastTransitionTime ?? now) : now;
    return { ...wanted, lastHeartbeatTime: now, lastTransitionTime };
  });
}

/** Whether somebody else's word stands in the conditions: missing, or another status than the machine would post. */
export function conditionsDiffer(found: readonly NodeCondition[] | undefined): boolean {
  return HEALTHY.some((wanted) => found?.find((condition) => condition.type === wanted.type)?.status !== wanted.status);
}

function statusAt(machine: MachineIdentity, nowMs: number, found: NodeStatus | undefined): NodeStatus {
  return {
    addresses: [
      { type: 'InternalIP', address: addressOf(machine) },
      { type: 'Hostname', address: machine.name },
    ],
    allocatable: { cpu: '3920m', memory: '7562036Ki', 'ephemeral-storage': '47093746742', pods: '110' },
    capacity: { cpu: '4', memory: '8037172Ki', 'ephemeral-storage': '51098228Ki', pods: '110' },
    conditions: conditionsAt(nowMs, found?.conditions),
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    nodeInfo: {
      architecture: 'arm64',
      bootID: uuidOf(boardId(machine.name, 'boot')),
      containerRuntimeVersion: 'containerd://2.1.4',
      kernelVersion: '6.12.48+deb13-arm64',
      kubeProxyVersion: '',
      kubeletVersion: KUBELET_VERSION,
      machineID: boardId(machine.name, 'machine'),
      operatingSystem: 'linux',
      osImage: 'Debian GNU/Linux 13 (trixie)',
      systemUUID: uuidOf(boardId(machine.name, 'system')),
    },
  };
}

/** The Node as first posted. */
export function nodeAt(machine: MachineIdentity, region: string, nowMs: number): KubeNode {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: machine.name,
      labels: labelsOf(machine, region),
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
    },
    spec: machine.providerId === undefined ? {} : { providerID: machine.providerId },
    status: statusAt(machine, nowMs, undefined),
  };
}

/** Default labels that a Node found at registration lacks or has otherwise; undefined when they stand right. */
export function labelCorrections(
  machine: MachineIdentity,
  region: string,
  found: KubeObject,
): Record<string, string> | undefined {
  const wrong = Object.entries(labelsOf(machine, region)).filter(
    ([key, value]) => found.metadata.labels?.[key] !== value,
  );
  return wrong.length === 0 ? undefined : Object.fromEntries(wrong);
}

/**
 * Strategic merge patch for nodes/X/status. Conditions always (their heartbeat time moves), other fields where they
 * differ. The address list is replaced as a whole: merged by its key it would lose entries.
 */
export function statusPatchAt(machine: MachineIdentity, nowMs: number, found: KubeNode | undefined): KubeObject {
  const wanted = statusAt(machine, nowMs, found?.status);
  const reported: Record<string, unknown> = found?.status ?? {};
  const status: Record<string, unknown> = { conditions: wanted.conditions };
  for (const [field, value] of Object.entries(wanted)) {
    if (field === 'conditions' || sameJson(value, reported[field])) continue;
    status[field] = field === 'addresses' ? [...(value as unknown[]), { $patch: 'replace' }] : value;
  }
  return { metadata: { name: machine.name }, status } as KubeObject;
}

/** Equal up to the order of keys. The values compared here are a few levels deep. */
function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  const leftKeys = Object.keys(left);
  if (leftKeys.length !== Object.keys(right).length) return false;
  return leftKeys.every((key) =>
    sameJson((left as Record<string, unknown>)[key], (right as Record<string, unknown>)[key]),
  );
}

/** The Lease to create or, with `base`, to renew: renewTime and duration are written, the holder is kept as found. */
export function leaseAt(options: {
  readonly machine: MachineIdentity;
  readonly nodeUid: string;
  readonly nowMs: number;
  readonly durationSeconds: number;
  readonly base: KubeObject | undefined;
}): KubeObject {
  const { machine, base } = options;
  const spec = (base?.spec ?? { holderIdentity: machine.name }) as LeaseSpec;
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      ...(base?.metadata ?? {}),
      name: machine.name,
      namespace: LEASE_NAMESPACE,
      ownerReferences: base?.metadata.ownerReferences?.length
        ? base.metadata.ownerReferences
        : [{ apiVersion: 'v1', kind: 'Node', name: machine.name, uid: options.nodeUid }],
    },
    spec: { ...spec, leaseDurationSeconds: options.durationSeconds, renewTime: microTimeOf(options.nowMs) },
  };
}
