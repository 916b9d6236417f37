/** Parts of decision records that several controllers use: objects, inputs in their recorded form, texts. */

import type { GateReason, GateVerdict } from '../fleet/gate.ts';
import type { Limiter } from '../fleet/limiter.ts';
import type { NodeHealth } from '../fleet/nodes/health.ts';
import { defaultPolicy, type Policy } from '../fleet/policy.ts';
import type { DecisionAbout, WorkloadKind } from './decision-record.ts';

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
