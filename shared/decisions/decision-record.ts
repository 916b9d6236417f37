/**
 * The decision of a controller, with the inputs of its rule. The rule can be evaluated again (replay.ts).
 *
 * A record is plain JSON and self-contained: `inputs` holds the part of the policy that the rule read, `outcome` what
 * the rule returned. Each controller's `decisions.ts` builds its records and replays them. Records are kept for 30 days
 * under the object they are about (docs/explain.md).
 */

import type { GateReason, GateVerdict } from '../fleet/gate.ts';
import type { Limiter } from '../fleet/limiter.ts';
import type { NodeHealth } from '../fleet/nodes/health.ts';
import { defaultPolicy, type Policy } from '../fleet/policy.ts';
import { shortHash } from '../text.ts';

export const DECISION_ACTS = [
  'MarkUnknown',
  'GateClosed',
  'GateOpened',
  'TotalDisruptionEntered',
  'TotalDisruptionLeft',
  'ZoneStateSet',
  'ZoneRateSet',
  'EvictionHeld',
  'Tainted',
  'TaintSwapped',
  'TaintLifted',
  'ProfileChanged',
  'SilencePlanned',
  'SilenceEnded',
  'FlappingBegan',
  'FlappingEnded',
  'PodEvictionSet',
  'PodEvictionMoved',
  'PodEvictionHeld',
  'PodEvictionCancelled',
  'PodDeleted',
  'PodRemoved',
  'PodLeftToSite',
  'PodMoved',
  'PodMoveMerged',
  'PodMoveRefused',
  'PodGivenUp',
  'PodCollected',
  'NodeDeleted',
  'NodeKept',
  'ShutdownTaintAdded',
  'ShutdownTaintRemoved',
  'OutOfServiceAdded',
  'OutOfServiceRemoved',
  'VolumeDetached',
  'VolumeKept',
  'PodScheduled',
  'PodUnschedulable',
  'PodPreempting',
  'PodPreempted',
  'SchedulingHeld',
  'NotWritten',
  'PodsCreated',
  'PodsDeleted',
  'ReplicaSetMade',
  'ReplicaSetsScaled',
  'RolloutHeld',
  'StatefulPodAwaited',
  'Collected',
  'JobFinished',
  'JobExpired',
  'CronJobStarted',
  'CronJobSkipped',
  'RequestsRefused',
] as const;
export type DecisionAct = (typeof DECISION_ACTS)[number];

/** Kinds of workloads. Their controllers record decisions. */
export const WORKLOAD_KINDS = [
  'ReplicaSet',
  'Deployment',
  'ReplicationController',
  'DaemonSet',
  'StatefulSet',
  'Job',
  'CronJob',
] as const;
export type WorkloadKind = (typeof WORKLOAD_KINDS)[number];

export interface DecisionAbout {
  readonly kind: 'Node' | 'Pod' | 'Zone' | 'Fleet' | 'Object' | WorkloadKind;
  /** Namespaced objects only. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

/** The whole cluster: safety gate and total disruption. */
export const FLEET: DecisionAbout = Object.freeze({ kind: 'Fleet', name: 'fleet' });

export type Outcome = Readonly<Record<string, unknown>>;

/** The outcome of a rule that decided nothing. */
export const NOTHING: Outcome = Object.freeze({ kind: 'nothing' });

export interface DecisionDraft {
  readonly act: DecisionAct;
  readonly about: DecisionAbout;
  /** Server time at which the rule was evaluated. Epoch milliseconds. */
  readonly atMs: number;
  /** The text that `explain` prints. */
  readonly reason: string;
  /** Id of the rule, one of the keys of the replay registry. */
  readonly rule: string;
  readonly inputs: object;
  /** What the rule returned; `replay` compares it. */
  readonly outcome: Outcome;
}

/**
 * The drafts of one controller. `Inputs` maps each rule id to the inputs that the rule reads; absent means undefined.
 */
export type DraftOf<Inputs> = {
  [R in keyof Inputs & string]: DecisionDraft & { readonly rule: R; readonly inputs: Inputs[R] };
}[keyof Inputs & string];

/** Runs each rule of one controller over recorded inputs. Returns what `outcome` would hold. */
export type ReplayRules<Inputs> = {
  readonly [R in keyof Inputs & string]: (inputs: Inputs[R], record: DecisionRecord) => Outcome;
};

export interface DecisionRecord extends DecisionDraft {
  readonly v: 1;
  /** Hash of the whole policy that was in force. */
  readonly policy: string;
  /** The tick that decided; absent where an object change triggered the decision. */
  readonly slot?: number;
  /** Fencing number of node-monitor's claim. */
  readonly fence?: number;
  /** Hash of all other fields: shows whether the record or the rule has changed. */
  readonly sum: string;
}

export const sealed = (record: Omit<DecisionRecord, 'sum'>): DecisionRecord => ({ ...record, sum: sumOf(record) });

/** Hash of a record without its `sum`. */
export function sumOf(record: object): string {
  const { sum: _, ...rest } = record as { readonly sum?: string };
  return shortHash(canonical(rest));
}

/** JSON with sorted keys and without undefined members. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  let fields = '';
  for (const key of Object.keys(value).sort()) {
    const each = (value as Readonly<Record<string, unknown>>)[key];
    if (each !== undefined) fields += `${fields === '' ? '' : ','}${JSON.stringify(key)}:${canonical(each)}`;
  }
  return `{${fields}}`;
}

export interface NodeIdentity {
  readonly nodeName: string;
  readonly uid: string;
}

export const aboutNode = ({ nodeName, uid }: NodeIdentity): DecisionAbout => ({ kind: 'Node', name: nodeName, uid });
export const aboutZone = (zone: string): DecisionAbout => ({ kind: 'Zone', name: zone });
export const aboutPod = (pod: {
  readonly namespace: string;
  readonly name: string;
  readonly podUid: string;
}): DecisionAbout => ({ kind: 'Pod', namespace: pod.namespace, name: pod.name, uid: pod.podUid });

/** A workload, as far as a record names it. */
export interface RecordedWorkload {
  readonly metadata: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
}

export const aboutWorkload = (kind: WorkloadKind, { metadata }: RecordedWorkload): DecisionAbout => ({
  kind,
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
});

/** The part of the policy that a rule read. */
export type RecordedPolicy = Partial<Policy>;

export function policyPart<K extends keyof Policy>(policy: Pick<Policy, K>, ...keys: readonly K[]): Pick<Policy, K> {
  return Object.fromEntries(keys.map((key) => [key, policy[key]])) as Pick<Policy, K>;
}

export const fullPolicy = (policy: RecordedPolicy): Policy => ({ ...defaultPolicy, ...policy });

/** The policy fields that the health rule reads. */
export const GRACE_FIELDS = [
  'nodeMonitorGracePeriodSeconds',
  'nodeStartupGracePeriodSeconds',
  'beatIntervalSeconds',
] as const;

/** The fields of a node's digest that rules read. */
export type RecordedHealth = Omit<
  NodeHealth,
  'nodeName' | 'uid' | 'suspect' | 'podsToMark' | 'flaps' | 'leaseDurationSeconds'
>;

export function recordedHealth(health: NodeHealth): RecordedHealth {
  const {
    nodeName: _name,
    uid: _uid,
    suspect: _suspect,
    podsToMark: _pods,
    flaps: _flaps,
    leaseDurationSeconds: _d,
    ...recorded
  } = health;
  return recorded;
}

export const healthOf = (about: DecisionAbout, health: RecordedHealth): NodeHealth => ({
  ...health,
  nodeName: about.name,
  uid: about.uid ?? '',
  suspect: true,
});

/** A gate is recorded as the reasons that keep it closed. */
export const recordedGate = (gate: GateVerdict): readonly GateReason[] => (gate.kind === 'holding' ? gate.reasons : []);

export const gateOf = (reasons: readonly GateReason[]): GateVerdict =>
  reasons.length === 0 ? { kind: 'open' } : { kind: 'holding', reasons, sinceMs: 0 };

/** A recorded limiter without a token time has `tatMs` undefined again. */
export const limiterOf = ({ tatMs, ratePerSecond }: Limiter): Limiter => ({ tatMs, ratePerSecond });

/** Seconds to one decimal place at most. */
export const secondsText = (value: number): string => `${Math.round(value * 10) / 10} s`;

export const zoneText = (zone: string): string => (zone === '' ? '"" (nodes without a zone label)' : zone);

export const rateText = (perSecond: number): string =>
  perSecond > 0 ? `one taint every ${secondsText(1 / perSecond)}` : 'no taints';
