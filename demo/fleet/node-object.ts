/**
 * The Node of a simulated machine with invented hardware. The rules of the agent compute its labels and conditions.
 */
import { withCondition } from '../../agent/rules/node-conditions.ts';
import { initialNode } from '../../agent/rules/node-registration.ts';
import { withPressures, withReady } from '../../agent/rules/reported-conditions.ts';
import { labelsToSet } from '../../agent/rules/status-report.ts';
import { SIMULATED_RUNTIME } from '../../shared/api/logs/without-agent.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import { RESTART_ALL } from '../../shared/kinds/pods/declared-features.ts';
import type { KubeNode, NodeCondition, NodeStatus } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { MachineIdentity } from './names.ts';

const PLATFORM = { operatingSystem: 'linux', architecture: 'arm64' } as const;

/** 32 hex digits that depend only on the machine name and `salt`, for machine, system and boot ids. */
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

/** 10.<zone>.<high>.<low>; 65,000 machines per zone before two share an address. */
export function addressOf(machine: MachineIdentity): string {
  const host = machine.index + 10;
  return `10.${16 + machine.zoneIndex}.${(host >> 8) & 255}.${host & 255}`;
}

/** The condition NetworkUnavailable, which a network plugin sets on a real node. */
function withNetwork(found: readonly NodeCondition[] | undefined, nowMs: number): NodeCondition[] {
  const now = formatTime(nowMs);
  const before = found?.find(({ type }) => type === 'NetworkUnavailable');
  return withCondition(found, {
    type: 'NetworkUnavailable',
    status: 'False',
    reason: 'NetworkReady',
    message: 'pod network is up',
    lastHeartbeatTime: now,
    lastTransitionTime: before?.status === 'False' ? (before.lastTransitionTime ?? now) : now,
  });
}

/** Conditions of a healthy machine; those of other types stay as found. */
function conditionsAt(machine: MachineIdentity, nowMs: number, status: NodeStatus): NodeCondition[] {
  const nodeName = machine.name;
  const network = withNetwork(status.conditions, nowMs);
  const pressures = withPressures(network, { isUnderPressure: () => false, nodeName, nowMs });
  const ready = withReady(pressures.conditions, {
    errors: {},
    capacity: status.capacity,
    localStorageCapacityIsolation: true,
    nodeName,
    nowMs,
  });
  return ready.conditions;
}

/** Status without conditions. */
export const statusOfMachine = (machine: MachineIdentity): NodeStatus => ({
  addresses: [
    { type: 'InternalIP', address: addressOf(machine) },
    { type: 'Hostname', address: machine.name },
  ],
  allocatable: { cpu: '3920m', memory: '7562036Ki', 'ephemeral-storage': '47093746742', pods: '110' },
  capacity: { cpu: '4', memory: '8037172Ki', 'ephemeral-storage': '51098228Ki', pods: '110' },
  daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
  declaredFeatures: [RESTART_ALL],
  nodeInfo: {
    architecture: PLATFORM.architecture,
    bootID: uuidOf(boardId(machine.name, 'boot')),
    containerRuntimeVersion: `${SIMULATED_RUNTIME}1`,
    kernelVersion: '6.12.48+deb13-arm64',
    kubeProxyVersion: '',
    kubeletVersion: KUBERNETES_VERSION,
    machineID: boardId(machine.name, 'machine'),
    operatingSystem: PLATFORM.operatingSystem,
    osImage: 'Debian GNU/Linux 13 (trixie)',
    systemUUID: uuidOf(boardId(machine.name, 'system')),
  },
});

/**
 * The stored Node with the labels and the status that the machine reports. Extended resources that a client wrote into
 * the capacity can be allocated, as with a kubelet.
 */
export function computedNode(machine: MachineIdentity, found: KubeNode, nowMs: number): KubeNode {
  const labels = { ...found.metadata.labels, ...labelsToSet(found.metadata.labels, PLATFORM) };
  const own = statusOfMachine(machine);
  const extended = Object.fromEntries(
    Object.entries(found.status?.capacity ?? {}).filter(([name]) => name.includes('/')),
  );
  const status = {
    ...found.status,
    ...own,
    capacity: { ...extended, ...own.capacity },
    allocatable: { ...extended, ...own.allocatable },
  };
  return {
    ...found,
    metadata: { ...found.metadata, labels },
    status: { ...status, conditions: conditionsAt(machine, nowMs, status) },
  };
}

/** The Node for the registration. */
export function nodeAt(machine: MachineIdentity, region: string, nowMs: number): KubeNode {
  const initial = initialNode(
    {
      nodeName: machine.name,
      nodeLabels: {},
      providerId: machine.providerId ?? '',
      registerSchedulable: true,
      registerWithTaints: [],
      cloudProvider: '',
      enableControllerAttachDetach: true,
    },
    {
      hostname: machine.name,
      ...PLATFORM,
      others: { 'topology.kubernetes.io/region': region, 'topology.kubernetes.io/zone': machine.zone },
    },
  );
  return computedNode(machine, initial, nowMs);
}
