/**
 * The Node and the Lease that a simulated machine writes. The rules of the agent decide; a machine with a wrong clock
 * then writes other times and counts.
 */
import { renewedLease, newLease as ruledLease } from '../agent/rules/lease.ts';
import { conditionOf, PRESSURE_TYPES, withCondition } from '../agent/rules/node-conditions.ts';
import { initialNode } from '../agent/rules/node-registration.ts';
import { withPressures, withReady } from '../agent/rules/reported-conditions.ts';
import { labelsToSet } from '../agent/rules/status-report.ts';
import type { KubeNode, KubeObject, NodeCondition } from '../shared/kinds/types.ts';
import type { ConditionStatus } from '../shared/kubernetes/kubernetes.ts';
import { formatMicroTime, formatTime } from '../shared/kubernetes/time.ts';
import type { MachineClock } from './faults/lying-clocks.ts';
import type { MachineSpec } from './scenario.ts';
import { providerIdOf } from './simulated-instance.ts';

const LEASE_SECONDS = 40;
/** A machine of a scenario has the operating system of its label. */
const platformOf = ({ labels }: MachineSpec) => ({
  operatingSystem: labels['kubernetes.io/os'] ?? 'linux',
  architecture: 'amd64',
});
const CAPACITY = { cpu: '4', memory: '8Gi', pods: '110' } as const;

export interface MachineAtTime {
  readonly spec: MachineSpec;
  /** The clock of a machine that writes each time and count that an agent can write, each with an error of its own. */
  readonly clock: MachineClock | undefined;
  /** What the machine reports, by condition type. */
  readonly reported: ReadonlyMap<string, ConditionStatus>;
  readonly nowMs: number;
}

export const healthyConditions = (): Map<string, ConditionStatus> =>
  new Map<string, ConditionStatus>([...PRESSURE_TYPES.map((type) => [type, 'False'] as const), ['Ready', 'True']]);

const ownTimeMs = ({ spec, nowMs }: MachineAtTime): number => nowMs + spec.clockOffsetMs;

/** Reported because a scenario says so: a type or a status that the rules of the agent do not know. */
function otherCondition(found: NodeCondition | undefined, type: string, status: ConditionStatus, nowMs: number) {
  const now = formatTime(nowMs);
  return {
    type,
    status,
    lastHeartbeatTime: now,
    lastTransitionTime: found?.status === status ? (found.lastTransitionTime ?? now) : now,
    reason: status === 'True' ? `${type}IsTrue` : `${type}IsNotTrue`,
    message: 'set by the scenario',
  };
}

/** All conditions of the Node, with those of the machine as it reports them. */
function conditionsOf(machine: MachineAtTime, found: readonly NodeCondition[] | undefined): NodeCondition[] {
  const { reported, spec } = machine;
  const nowMs = ownTimeMs(machine);
  const pressures = withPressures(found, {
    isUnderPressure: (type) => reported.get(type) === 'True',
    nodeName: spec.name,
    nowMs,
  });
  const ready = withReady(pressures.conditions, {
    errors: reported.get('Ready') === 'True' ? {} : { runtime: 'container runtime is down' },
    capacity: CAPACITY,
    localStorageCapacityIsolation: false,
    nodeName: spec.name,
    nowMs,
  });
  let { conditions } = ready;
  for (const [type, status] of reported) {
    if (conditionOf(conditions, type)?.status === status) continue;
    conditions = withCondition(conditions, otherCondition(conditionOf(found, type), type, status, nowMs));
  }
  return conditions;
}

/** The Node as found, with the labels and conditions that the machine reports. By a correct clock. */
export function computedNode(machine: MachineAtTime, found: KubeNode): KubeNode {
  const labels = { ...found.metadata.labels, ...labelsToSet(found.metadata.labels, platformOf(machine.spec)) };
  const conditions = conditionsOf(machine, found.status?.conditions);
  return { ...found, metadata: { ...found.metadata, labels }, status: { ...found.status, conditions } };
}

/** The computed Node with the times that the clock of the machine shows. */
export function writtenNode(machine: MachineAtTime, found: KubeNode): KubeNode {
  const computed = computedNode(machine, found);
  const { clock, nowMs, reported } = machine;
  if (clock === undefined) return computed;
  const lastHeartbeatTime = formatTime(clock.timeMs('lastHeartbeatTime', nowMs));
  const changedTime = formatTime(clock.timeMs('lastTransitionTime', nowMs));
  const conditions = (computed.status?.conditions ?? []).map((condition) => {
    if (!reported.has(condition.type)) return condition;
    const before = conditionOf(found.status?.conditions, condition.type);
    const isChanged = before?.status !== condition.status || before.lastTransitionTime === undefined;
    return { ...condition, lastHeartbeatTime, ...(isChanged ? { lastTransitionTime: changedTime } : {}) };
  });
  return { ...computed, status: { ...computed.status, conditions } };
}

/** The Node as first posted. A machine sets the time of its taints as an agent does. */
export function registeredNode(machine: MachineAtTime): KubeNode {
  const { spec, clock, nowMs } = machine;
  const timed = (taint: MachineSpec['taints'][number]) =>
    clock === undefined ? taint : { ...taint, timeAdded: formatTime(clock.timeMs('timeAdded', nowMs)) };
  const initial = initialNode(
    {
      nodeName: spec.name,
      nodeLabels: spec.labels,
      providerId: spec.hasInstance ? providerIdOf(spec) : '',
      registerSchedulable: true,
      registerWithTaints: spec.taints.map(timed),
      cloudProvider: '',
      enableControllerAttachDetach: false,
    },
    { hostname: spec.name, ...platformOf(spec) },
  );
  const creationTimestamp = clock === undefined ? undefined : formatTime(clock.timeMs('creationTimestamp', nowMs));
  const metadata = creationTimestamp === undefined ? initial.metadata : { ...initial.metadata, creationTimestamp };
  const addresses = [{ type: 'Hostname', address: spec.name }];
  return writtenNode(machine, { ...initial, metadata, status: { capacity: CAPACITY, addresses } });
}

const leaseTiming = (machine: MachineAtTime) => ({
  leaseDurationSeconds: machine.clock?.count('leaseDurationSeconds', LEASE_SECONDS, machine.nowMs) ?? LEASE_SECONDS,
  nowMs: machine.clock?.timeMs('renewTime', machine.nowMs) ?? ownTimeMs(machine),
});

/** No agent writes these two fields. A machine with a wrong clock does, because a client may. */
function withLeaseHistory({ clock, nowMs }: MachineAtTime, lease: KubeObject): KubeObject {
  if (clock === undefined) return lease;
  const acquireTime = formatMicroTime(clock.timeMs('acquireTime', nowMs));
  return {
    ...lease,
    spec: { ...lease.spec, acquireTime, leaseTransitions: clock.count('leaseTransitions', 1, nowMs) },
  };
}

export const createdLease = (machine: MachineAtTime, node: KubeNode): KubeObject =>
  withLeaseHistory(machine, ruledLease(node, leaseTiming(machine)));

export const nextLease = (machine: MachineAtTime, known: KubeObject, node: KubeNode | undefined): KubeObject =>
  withLeaseHistory(machine, renewedLease(known, { ...leaseTiming(machine), node }));
