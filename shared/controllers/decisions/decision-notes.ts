/**
 * Decisions of the rules as records: which inputs are kept, and what is said of them to people. Pure; what became of a
 * decision (applied, refused by another write) is the caller's to know.
 */

import type { CloudAnswer } from '../../domain/cloud/instance.ts';
import type { ConditionStatus, NodeCondition, Taint } from '../../domain/kubernetes.ts';
import type { NodeHealth } from '../../domain/nodes/node-health.ts';
import type { NoExecuteTaint } from '../../domain/nodes/taint-times.ts';
import type { Policy } from '../../domain/policy.ts';
import { rfc3339 } from '../../domain/rfc3339.ts';
import type { QueuedNode } from '../../domain/zones/fleet-records.ts';
import type { GateReason, GateRecord, GateVerdict, Probe } from '../../domain/zones/gate.ts';
import type { Limiter } from '../../domain/zones/limiter.ts';
import { type ZoneMetrics, type ZoneState, zoneRatePerSecond, zoneStateOf } from '../../domain/zones/zone-state.ts';
import type { CloudDecision, CloudQuestion, decideAutomaticOutOfService } from '../cloud-node/rule.ts';
import type { EvictionDecision, EvictionHold } from '../evictor/rule.ts';
import type { MonitorDecision } from '../node-monitor/rule.ts';
import type { EvictablePod, EvictionTimer, PodEvictionDecision } from '../pod-evictor/rule.ts';
import type { CollectableNode, CollectablePod, PodRemoval } from '../pod-gc/rule.ts';
import type { AttachedVolume, DetachDecision, VolumeNode } from '../volume-detacher/rule.ts';
import {
  type DecisionAbout,
  type DecisionAct,
  type DecisionDraft,
  FLEET,
  type RecordedHealth,
  type RuleInputs,
  taintChange,
} from './decision-record.ts';

interface OfNode {
  readonly nodeName: string;
  readonly uid: string;
}

export const aboutNode = ({ nodeName, uid }: OfNode): DecisionAbout => ({ kind: 'Node', name: nodeName, uid });
const aboutZone = (zone: string): DecisionAbout => ({ kind: 'Zone', name: zone });
const aboutPod = (pod: {
  readonly namespace: string;
  readonly name: string;
  readonly podUid: string;
}): DecisionAbout => ({
  kind: 'Pod',
  namespace: pod.namespace,
  name: pod.name,
  uid: pod.podUid,
});

function part<K extends keyof Policy>(policy: Pick<Policy, K>, ...keys: readonly K[]): Pick<Policy, K> {
  return Object.fromEntries(keys.map((key) => [key, policy[key]])) as Pick<Policy, K>;
}

const GRACES = ['nodeMonitorGracePeriodSeconds', 'nodeStartupGracePeriodSeconds', 'beatIntervalSeconds'] as const;

function recorded(health: NodeHealth): RecordedHealth {
  const { nodeName: _name, uid: _uid, suspect: _suspect, podsToMark: _pods, ...kept } = health;
  return kept;
}

/** Seconds for people: whole where they are. */
const seconds = (value: number): string => `${Math.round(value * 10) / 10} s`;
const reasonsText = (reasons: readonly GateReason[]): string =>
  reasons
    .map((reason) =>
      reason === 'missedTicks' ? 'ticks of our own were missing' : 'our own probe beats get no success',
    )
    .join(', ');
const zoneCountText = (zone: ZoneMetrics | undefined): string =>
  zone === undefined ? '' : `; with it ${zone.unhealthy} of ${zone.size} nodes of its zone are not ready`;
const zoneText = (zone: string): string => (zone === '' ? 'of nodes without one' : zone);

export function markNote(
  decision: Extract<MonitorDecision, { kind: 'markUnknown' }>,
  seen: NodeHealth,
  at: { readonly nowMs: number; readonly policy: Policy; readonly zone: ZoneMetrics | undefined },
): DecisionDraft {
  const { silentSeconds, graceSeconds, freshSinceMs } = decision;
  return {
    act: 'MarkUnknown',
    about: aboutNode(decision),
    atMs: at.nowMs,
    reason: `silent for ${seconds(silentSeconds)}, allowed are ${seconds(graceSeconds)}${zoneCountText(at.zone)}`,
    rule: 'silence',
    inputs: {
      health: recorded(seen),
      freshSinceMs,
      ...(at.zone === undefined ? {} : { zoneCount: { size: at.zone.size, notReady: at.zone.unhealthy } }),
      policy: part(at.policy, ...GRACES),
    },
    outcome: { mark: true, silentSeconds, graceSeconds },
  };
}

/** undefined when the gate is as it was. */
export function gateNote(
  before: GateRecord,
  after: GateRecord,
  at: {
    readonly nowMs: number;
    readonly probes: readonly Probe[];
    readonly policy: Policy;
    readonly withheldMarks: number;
  },
): DecisionDraft | undefined {
  if (before.reasons.join() === after.reasons.join()) return undefined;
  const holds = after.reasons.length > 0;
  const { reasons, sinceMs, freshSinceMs } = after;
  const withheld = at.withheldMarks === 0 ? '' : `; ${at.withheldMarks} nodes would have been marked`;
  return {
    act: holds ? 'GateClosed' : 'GateOpened',
    about: FLEET,
    atMs: at.nowMs,
    reason: holds
      ? `we doubt ourselves: ${reasonsText(reasons)}; nobody is newly marked, tainted or evicted${withheld}`
      : `no doubt any more; every node has a full grace from ${rfc3339(freshSinceMs)}`,
    rule: 'gate',
    inputs: {
      before,
      probes: at.probes,
      withheldMarks: at.withheldMarks,
      policy: part(
        at.policy,
        'nodeMonitorPeriodSeconds',
        'nodeMonitorGracePeriodSeconds',
        'beatIntervalSeconds',
        'ingestGate',
        'tickGate',
      ),
    },
    outcome: { reasons, sinceMs, freshSinceMs },
  };
}

export function disruptionNote(
  decision: Extract<MonitorDecision, { kind: 'enterTotalDisruption' | 'leaveTotalDisruption' }>,
  at: { readonly nowMs: number; readonly policy: Policy; readonly zones: readonly ZoneMetrics[] },
): DecisionDraft {
  const enters = decision.kind === 'enterTotalDisruption';
  const zones: Partial<Record<ZoneState, number>> = {};
  for (const { size, unhealthy } of at.zones) {
    if (size === 0) continue;
    const state = zoneStateOf({ ready: size - unhealthy, notReady: unhealthy }, at.policy);
    zones[state] = (zones[state] ?? 0) + 1;
  }
  return {
    act: enters ? 'TotalDisruptionEntered' : 'TotalDisruptionLeft',
    about: FLEET,
    atMs: at.nowMs,
    reason: enters
      ? `all ${decision.zones} zones are dark, so it is more likely us: evictions are called off`
      : `not every zone is dark any more (${decision.zones} zones): every node gets a fresh grace`,
    rule: 'disruption',
    inputs: { total: !enters, zones },
    outcome: { total: enters },
  };
}

/** Of a zone that was judged anew: its state, its rate, or its first sight. */
export function zoneNote(
  decision: Extract<MonitorDecision, { kind: 'createZone' | 'setZoneState' | 'setZoneRate' }>,
  at: {
    readonly nowMs: number;
    readonly policy: Policy;
    readonly totalDisruption: boolean;
    readonly zone: ZoneMetrics | undefined;
  },
): DecisionDraft {
  const { policy, totalDisruption, zone } = at;
  const notReady = zone?.unhealthy ?? 0;
  const size = zone?.size ?? 0;
  const to = decision.kind === 'setZoneState' ? decision.to : decision.state;
  const count = `${notReady} of ${size} nodes are not ready`;
  const inputs: RuleInputs['zone'] = {
    ready: size - notReady,
    notReady,
    totalDisruption,
    policy: part(
      policy,
      'unhealthyZoneThreshold',
      'nodeEvictionRatePerSecond',
      'secondaryNodeEvictionRatePerSecond',
      'largeClusterSizeThreshold',
      'fullDisruption',
    ),
  };
  const note = (act: DecisionAct, reason: string, ratePerSecond: number): DecisionDraft => ({
    act,
    about: aboutZone(decision.zone),
    atMs: at.nowMs,
    reason,
    rule: 'zone',
    inputs,
    outcome: { ...(to === undefined ? {} : { state: to }), ratePerSecond },
  });
  switch (decision.kind) {
    case 'createZone':
      return note(
        'ZoneStateSet',
        `zone ${zoneText(decision.zone)} is seen first; ${to ?? 'empty'}: ${count}`,
        decision.ratePerSecond,
      );
    case 'setZoneState': {
      const rate = totalDisruption ? 0 : zoneRatePerSecond(to ?? 'Initial', size, policy);
      return note('ZoneStateSet', `${decision.from ?? 'empty'} to ${to ?? 'empty'}: ${count}`, rate);
    }
    case 'setZoneRate': {
      const why = totalDisruption ? 'total disruption' : (to ?? 'empty');
      const { fromPerSecond, toPerSecond } = decision;
      return note(
        'ZoneRateSet',
        `${rateText(fromPerSecond)} to ${rateText(toPerSecond)}: ${why}, ${count}`,
        toPerSecond,
      );
    }
  }
}

const rateText = (perSecond: number): string =>
  perSecond > 0 ? `one taint in ${seconds(1 / perSecond)}` : 'no taints';

export function holdNote(
  hold: EvictionHold,
  at: {
    readonly nowMs: number;
    readonly zone: string;
    readonly limiter: Limiter;
    readonly gate: GateVerdict;
    readonly totalDisruption: boolean;
    readonly waiting: readonly QueuedNode[];
  },
): DecisionDraft {
  const count = at.waiting.length;
  const who = `${count} ${count === 1 ? 'node waits' : 'nodes wait'}`;
  const why = (): string => {
    switch (hold.kind) {
      case 'gate':
        return `we doubt ourselves: ${reasonsText(hold.reasons)}`;
      case 'totalDisruption':
        return 'every zone is dark';
      case 'never':
        return 'the zone evicts nobody in its state';
      case 'rate':
        return `${rateText(at.limiter.ratePerSecond)}, the next at ${rfc3339(hold.untilMs)}`;
    }
  };
  return {
    act: 'EvictionHeld',
    about: aboutZone(at.zone),
    atMs: at.nowMs,
    reason: `${who} for the NoExecute taint: ${why()}`,
    rule: 'hold',
    inputs: {
      limiter: at.limiter,
      gate: at.gate.kind === 'holding' ? at.gate.reasons : [],
      totalDisruption: at.totalDisruption,
      waiting: count,
      first: at.waiting.slice(0, WAITING_NAMED_MAX).map(({ nodeName }) => nodeName),
    },
    outcome: { ...hold },
  };
}

/** Names in a record of a hold. */
const WAITING_NAMED_MAX = 5;

/** A hold that stays the same hold while it lasts has the same text. */
export function holdKey(hold: EvictionHold, ratePerSecond: number): string {
  if (hold.kind === 'gate') return `gate ${hold.reasons.join()}`;
  return hold.kind === 'rate' ? `rate ${ratePerSecond}` : hold.kind;
}

export function taintNote(
  decision: Extract<EvictionDecision, { kind: 'taint' }>,
  at: {
    readonly nowMs: number;
    readonly policy: Policy;
    readonly seen: NodeHealth;
    readonly item: QueuedNode;
    readonly limiter: Limiter;
    readonly freshSinceMs: number;
    readonly waiting: number;
  },
): DecisionDraft {
  const { taint, waitedSeconds, ratePerSecond, ready, zone } = decision;
  const { addedAtMs } = at.item;
  const key = taint === 'notReady' ? 'not-ready' : 'unreachable';
  return {
    act: 'Tainted',
    about: aboutNode(decision),
    atMs: at.nowMs,
    reason: `Ready is ${ready}; node.kubernetes.io/${key}:NoExecute after ${seconds(waitedSeconds)} of waiting, zone ${zoneText(zone)} at ${rateText(ratePerSecond)}`,
    rule: 'eviction',
    inputs: {
      item: { addedAtMs },
      health: recorded(at.seen),
      limiter: at.limiter,
      freshSinceMs: at.freshSinceMs,
      waiting: at.waiting,
      policy: part(at.policy, ...GRACES),
    },
    outcome: { taint, waitedSeconds, ratePerSecond },
  };
}

interface Situation extends OfNode {
  readonly nowMs: number;
  readonly ready: ConditionStatus | undefined;
  readonly noExecute: NodeHealth['noExecute'];
}

const situation = ({ ready, noExecute }: Situation, totalDisruption: boolean): RuleInputs['noExecute'] => ({
  ...(ready === undefined ? {} : { ready }),
  noExecute,
  totalDisruption,
});

export const swapNote = (of: Situation, from: string, to: string): DecisionDraft => ({
  act: 'TaintSwapped',
  about: aboutNode(of),
  atMs: of.nowMs,
  reason: `Ready is ${of.ready ?? 'absent'}: ${from} becomes ${to}, the clock of the pods runs on`,
  rule: 'noExecute',
  inputs: situation(of, false),
  outcome: { from, to },
});

export const liftNote = (of: Situation, reason: 'ready' | 'totalDisruption'): DecisionDraft => ({
  act: 'TaintLifted',
  about: aboutNode(of),
  atMs: of.nowMs,
  reason:
    reason === 'ready' ? 'Ready is True: no NoExecute taint of ours' : 'total disruption: evictions are called off',
  rule: 'noExecute',
  inputs: situation(of, reason === 'totalDisruption'),
  outcome: {
    lift: [...(of.noExecute.unreachable ? ['unreachable'] : []), ...(of.noExecute.notReady ? ['notReady'] : [])],
  },
});

/** Taints that follow a Node's conditions; undefined when they stay. */
export function taintsNote(
  of: OfNode & { readonly nowMs: number; readonly unschedulable: boolean },
  conditions: readonly NodeCondition[],
  before: readonly Readonly<Taint>[],
  after: readonly Readonly<Taint>[],
): DecisionDraft | undefined {
  const change = taintChange(before, after);
  const { added, removed } = change;
  if (added.length + removed.length === 0) return undefined;
  const ready = conditions.find(({ type }) => type === 'Ready')?.status ?? 'absent';
  const parts = [...added.map((each) => `+${each}`), ...removed.map((each) => `-${each}`)];
  return {
    act: removed.length === 0 ? 'Tainted' : added.length === 0 ? 'TaintLifted' : 'TaintSwapped',
    about: aboutNode(of),
    atMs: of.nowMs,
    reason: `Ready is ${ready}${of.unschedulable ? ', cordoned' : ''}: ${parts.join(', ')}`,
    rule: 'taints',
    inputs: {
      taints: before,
      conditions: conditions
        .map(({ type, status, reason }) => ({ type, status, ...(reason === undefined ? {} : { reason }) }))
        .filter(({ type }) => type === 'Ready' || type.endsWith('Pressure') || type === 'NetworkUnavailable'),
      unschedulable: of.unschedulable,
    },
    outcome: change,
  };
}

const POD_ACTS: Readonly<Record<PodEvictionDecision['kind'], DecisionAct>> = {
  schedule: 'PodEvictionSet',
  move: 'PodEvictionMoved',
  cancel: 'PodEvictionCancelled',
  drop: 'PodEvictionCancelled',
  hold: 'PodEvictionHeld',
  delete: 'PodDeleted',
};

export function podEvictionNote(
  decision: PodEvictionDecision,
  world: {
    readonly nodeName: string;
    readonly taints: readonly NoExecuteTaint[] | undefined;
    readonly pod: EvictablePod | undefined;
    readonly timer: EvictionTimer | undefined;
    readonly gate: GateVerdict;
    readonly freshSinceMs: number;
  },
  nowMs: number,
  policy: Policy,
): DecisionDraft {
  const atMs = 'atMs' in decision ? decision.atMs : undefined;
  const { nodeName, taints, pod, timer, gate, freshSinceMs } = world;
  const goes =
    decision.kind === 'delete'
      ? `, due at ${rfc3339(timer?.atMs ?? nowMs)}`
      : atMs === undefined
        ? ''
        : `, to go at ${rfc3339(atMs)}`;
  return {
    act: POD_ACTS[decision.kind],
    about: aboutPod(decision),
    atMs: nowMs,
    reason: `node ${nodeName}: ${decision.reason}${goes}`,
    rule: 'podEviction',
    inputs: {
      nodeName,
      ...(taints === undefined ? {} : { taints }),
      ...(pod === undefined ? {} : { pod }),
      ...(timer === undefined ? {} : { timer }),
      gate: gate.kind === 'holding' ? gate.reasons : [],
      freshSinceMs,
      policy: part(policy, 'nodeMonitorGracePeriodSeconds'),
    },
    outcome: { kind: decision.kind, why: decision.reason, ...(atMs === undefined ? {} : { atMs }) },
  };
}

const COLLECTED: Readonly<Record<PodRemoval['reason'], string>> = {
  terminated: 'it has ended, and more have than are kept',
  'out-of-service': 'it is terminating and its node is out of service',
  orphaned: 'its node no longer exists',
  unscheduled: 'it is terminating and was never bound',
};

export function podGcNote(
  removal: PodRemoval,
  world: { readonly pod: CollectablePod; readonly node: CollectableNode | undefined; readonly othersEnded: number },
  nowMs: number,
  policy: Policy,
): DecisionDraft {
  const { reason } = removal;
  const node = reason === 'orphaned' ? 'missing' : reason === 'out-of-service' ? world.node : undefined;
  return {
    act: 'PodCollected',
    about: aboutPod(removal),
    atMs: nowMs,
    reason: `${COLLECTED[reason]}${world.pod.nodeName === undefined ? '' : ` (${world.pod.nodeName})`}`,
    rule: 'podGc',
    inputs: {
      pod: world.pod,
      ...(node === undefined ? {} : { node }),
      othersEnded: reason === 'terminated' ? world.othersEnded : 0,
      policy: part(policy, 'terminatedPodGcThreshold'),
    },
    outcome: { remove: reason, steps: removal.steps.map(({ kind }) => kind) },
  };
}

const CLOUD_ACTS: Readonly<Record<CloudDecision['kind'], DecisionAct>> = {
  delete: 'NodeDeleted',
  addShutdownTaint: 'ShutdownTaintAdded',
  removeShutdownTaint: 'ShutdownTaintRemoved',
  wait: 'NodeKept',
  nothing: 'NodeKept',
};

const CLOUD_FOLLOWS: Readonly<Record<CloudDecision['kind'], string>> = {
  delete: 'the Node is deleted',
  addShutdownTaint: 'the Node gets the shutdown taint',
  removeShutdownTaint: 'the Node loses the shutdown taint',
  wait: 'the Node is kept, and EC2 asked again',
  nothing: 'the Node is kept',
};

const answerText = (answer: CloudAnswer): string => {
  switch (answer.kind) {
    case 'found':
      return `EC2 says ${answer.state}`;
    case 'notFound':
      return 'EC2 does not know the instance';
    case 'failed':
      return `EC2 gave no answer (${answer.cause})`;
    case 'foreign':
    case 'notEc2':
      return 'EC2 is not asked';
  }
};

export function cloudNote(
  decision: CloudDecision,
  question: CloudQuestion & { readonly uid: string },
  nowMs: number,
  policy: Policy,
): DecisionDraft {
  const { nodeName, uid, ready, answer, memory, createdAtMs, hasShutdownTaint, confirmWithinMs } = question;
  return {
    act: CLOUD_ACTS[decision.kind],
    about: aboutNode({ nodeName, uid }),
    atMs: nowMs,
    reason: `${answer.kind === 'found' ? answerText(answer) : decision.reason}: ${CLOUD_FOLLOWS[decision.kind]}`,
    rule: 'cloud',
    inputs: {
      question: {
        ready,
        answer,
        memory,
        createdAtMs,
        hasShutdownTaint,
        ...(confirmWithinMs === undefined ? {} : { confirmWithinMs }),
      },
      policy: part(policy, 'nodeMonitorPeriodSeconds', 'cloudYoungInstanceSeconds'),
    },
    outcome: { kind: decision.kind, why: decision.reason },
  };
}

export function outOfServiceNote(
  change: 'add' | 'remove',
  of: OfNode & { readonly nowMs: number; readonly policy: Policy },
  question: Parameters<typeof decideAutomaticOutOfService>[0],
): DecisionDraft {
  const { ready, answer, memory, outOfServiceTaint } = question;
  return {
    act: change === 'add' ? 'OutOfServiceAdded' : 'OutOfServiceRemoved',
    about: aboutNode(of),
    atMs: of.nowMs,
    reason:
      change === 'add'
        ? `${answerText(answer)}, since ${rfc3339(memory.downSinceMs ?? of.nowMs)}; its pods and volumes are let go`
        : 'Ready is True: back in service',
    rule: 'outOfService',
    inputs: {
      question: { ready, answer, memory, outOfServiceTaint },
      policy: part(of.policy, 'automaticOutOfService', 'automaticOutOfServiceAfterSeconds'),
    },
    outcome: { change },
  };
}

interface OfVolume extends OfNode {
  readonly nowMs: number;
  readonly policy: Policy;
}

export const detachNote = (
  of: OfVolume,
  decision: Extract<DetachDecision, { kind: 'detach' | 'refuse' | 'wait' }>,
  question: { readonly volume: AttachedVolume; readonly node: VolumeNode; readonly doubt?: string | undefined },
): DecisionDraft => ({
  act: decision.kind === 'detach' ? 'VolumeDetached' : 'VolumeKept',
  about: aboutNode(of),
  atMs: of.nowMs,
  reason: `volume ${question.volume.volumeId}: ${decision.reason}${decision.kind === 'detach' && decision.force ? ', by force' : ''}`,
  rule: 'volume',
  inputs: {
    volume: question.volume,
    node: question.node,
    ...(question.doubt === undefined ? {} : { doubt: question.doubt }),
    policy: part(of.policy, 'forceDetachTimeoutSeconds', 'disableForceDetachOnTimeout'),
  },
  outcome: { ...decision },
});

/** A volume left where it is for something found outside the rule, such as EC2's refusal. */
export const volumeKeptNote = (of: OfVolume, volume: string, why: string): DecisionDraft => ({
  act: 'VolumeKept',
  about: aboutNode(of),
  atMs: of.nowMs,
  reason: `volume ${volume}: ${why}`,
  rule: 'fact',
  inputs: { volume },
  outcome: {},
});
