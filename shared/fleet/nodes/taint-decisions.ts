/** Decision records of taints that follow from a Node's conditions. */
import {
  aboutNode,
  type DraftOf,
  NOTHING,
  type NodeIdentity,
  type ReplayRules,
} from '../../decisions/decision-record.ts';
import { defined } from '../../defined.ts';
import type { ConditionStatus, NodeCondition, Taint } from '../../kubernetes/kubernetes.ts';
import { rfc3339 } from '../../kubernetes/rfc3339.ts';
import { liftCloudTaints } from '../instances/watch-list.rule.ts';
import type { NodeProfile, Policy } from '../policy.ts';
import { readyStatusOf } from './conditions.ts';
import type { NodeHealth } from './health.ts';
import { DEFAULT_PROFILE, PROFILE_ANNOTATION, policyOf, profileNameOf, selectedKeys } from './node-profile.ts';
import { carriedNoExecute, decideNoExecute, liftNoExecute, reconcileNoSchedule } from './node-taints.ts';
import { PLANNED_REASON_ANNOTATION, plannedUntilMs } from './planned-silence.ts';
import type { TaintList } from './taint.ts';

interface NodeReconcilerInputs {
  /** decideNoExecute; in total disruption, all of our NoExecute taints that the Node carries. */
  readonly noExecute: {
    readonly ready?: ConditionStatus | undefined;
    readonly noExecute: NodeHealth['noExecute'];
    readonly totalDisruption: boolean;
  };
  /** reconciledTaints. */
  readonly taints: {
    readonly taints: readonly Readonly<Taint>[];
    readonly conditions: readonly Pick<NodeCondition, 'type' | 'status' | 'reason'>[];
    readonly unschedulable: boolean;
  };
  /** promiseChange. */
  readonly plannedSilence: { readonly fromMs?: number | undefined; readonly toMs?: number | undefined };
  /** profileNameOf, with the labels that the selectors read. */
  readonly profile: {
    readonly labels: Readonly<Record<string, string>>;
    readonly profiles: readonly Pick<NodeProfile, 'name' | 'nodeSelector'>[];
  };
}

export type NodeReconcilerDraft = DraftOf<NodeReconcilerInputs>;

interface Situation extends NodeIdentity {
  readonly nowMs: number;
  readonly ready: ConditionStatus | undefined;
  readonly noExecute: NodeHealth['noExecute'];
}

const inputsOf = ({ ready, noExecute }: Situation, totalDisruption: boolean): NodeReconcilerInputs['noExecute'] => ({
  ...defined({ ready }),
  noExecute,
  totalDisruption,
});

export const swapDraft = (node: Situation, from: string, to: string): NodeReconcilerDraft => ({
  act: 'TaintSwapped',
  about: aboutNode(node),
  atMs: node.nowMs,
  reason: `Ready is ${node.ready ?? 'absent'}: taint ${from} replaced by ${to}; toleration times of pods keep running`,
  rule: 'noExecute',
  inputs: inputsOf(node, false),
  outcome: { from, to },
});

export const liftDraft = (node: Situation, reason: 'ready' | 'totalDisruption'): NodeReconcilerDraft => ({
  act: 'TaintLifted',
  about: aboutNode(node),
  atMs: node.nowMs,
  reason: `${reason === 'ready' ? 'Ready is True' : 'total disruption'}: our NoExecute taints are removed`,
  rule: 'noExecute',
  inputs: inputsOf(node, reason === 'totalDisruption'),
  outcome: { lift: carriedNoExecute(node.noExecute) },
});

/** Taints that follow a Node's conditions; undefined when they do not change. */
export function taintsDraft(
  node: NodeIdentity & { readonly nowMs: number; readonly unschedulable: boolean },
  conditions: readonly NodeCondition[],
  before: readonly Readonly<Taint>[],
  after: readonly Readonly<Taint>[],
): NodeReconcilerDraft | undefined {
  const change = taintChange(before, after);
  const { added, removed } = change;
  if (added.length + removed.length === 0) return undefined;
  const ready = conditions.find(({ type }) => type === 'Ready')?.status ?? 'absent';
  const changes = [...added.map((each) => `+${each}`), ...removed.map((each) => `-${each}`)];
  return {
    act: removed.length === 0 ? 'Tainted' : added.length === 0 ? 'TaintLifted' : 'TaintSwapped',
    about: aboutNode(node),
    atMs: node.nowMs,
    reason: `Ready is ${ready}${node.unschedulable ? ', cordoned' : ''}: ${changes.join(', ')}`,
    rule: 'taints',
    inputs: {
      taints: before,
      conditions: conditions
        .map(({ type, status, reason }) => ({ type, status, ...defined({ reason }) }))
        .filter(({ type }) => type === 'Ready' || type.endsWith('Pressure') || type === 'NetworkUnavailable'),
      unschedulable: node.unschedulable,
    },
    outcome: change,
  };
}

type PromiseChange = { readonly kind: 'planned'; readonly untilMs: number } | { readonly kind: 'ended' };

/** What a write did to the promise of silence of a Node; undefined: nothing. */
const promiseChange = ({ fromMs, toMs }: NodeReconcilerInputs['plannedSilence']): PromiseChange | undefined => {
  if (fromMs === toMs) return undefined;
  return toMs === undefined ? { kind: 'ended' } : { kind: 'planned', untilMs: toMs };
};

/** A promise of silence was made, changed or ended; undefined when it did not change. */
export function silenceDraft(
  before: ProfiledNode,
  after: ProfiledNode,
  { nowMs, changedAtMs }: { readonly nowMs: number; readonly changedAtMs: number },
): NodeReconcilerDraft | undefined {
  const { name: nodeName = '', uid = '', annotations } = after.metadata;
  const inputs = { fromMs: plannedUntilMs(before.metadata.annotations), toMs: plannedUntilMs(annotations) };
  const change = promiseChange(inputs);
  if (change === undefined) return undefined;
  const draft = {
    about: aboutNode({ nodeName, uid }),
    atMs: nowMs,
    rule: 'plannedSilence',
    inputs: defined(inputs),
  } as const;
  if (change.kind === 'planned') {
    const why = annotations?.[PLANNED_REASON_ANNOTATION] ?? 'no reason';
    const reason = `no heartbeat is expected until ${rfc3339(change.untilMs)} (${why}); the node is not marked before`;
    return { ...draft, act: 'SilencePlanned', reason, outcome: change };
  }
  const isOver = inputs.fromMs !== undefined && inputs.fromMs <= changedAtMs;
  const how = isOver ? 'its time is over' : 'the node sends heartbeats again, or the promise was removed';
  const reason = `planned silence ended: ${how}; silence is counted from now on`;
  return { ...draft, act: 'SilenceEnded', reason, outcome: change };
}

interface ProfiledNode {
  readonly metadata: {
    readonly name?: string | undefined;
    readonly uid?: string | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}

/** The profile of a Node changed; undefined when it did not, or when the policy here selects another one. */
export function profileDraft(
  before: ProfiledNode,
  after: ProfiledNode,
  { nowMs, policy }: { readonly nowMs: number; readonly policy: Policy },
): NodeReconcilerDraft | undefined {
  const nameIn = ({ metadata }: ProfiledNode): string => metadata.annotations?.[PROFILE_ANNOTATION] ?? DEFAULT_PROFILE;
  const from = nameIn(before);
  const to = nameIn(after);
  const { name: nodeName = '', uid = '', labels: all = {} } = after.metadata;
  const selected = profileNameOf(all, policy.profiles) ?? DEFAULT_PROFILE;
  if (from === to || to !== selected) return undefined;
  const keys = selectedKeys(policy.profiles).filter((key) => Object.hasOwn(all, key));
  const labels = Object.fromEntries(keys.map((key) => [key, all[key]!]));
  const { beatIntervalSeconds, nodeMonitorGracePeriodSeconds } = policyOf(policy, to);
  const texts = keys.map((key) => `${key}=${labels[key]}`);
  const because = texts.length === 0 ? 'no label that a profile selects' : texts.join(', ');
  const times = `heartbeat every ${beatIntervalSeconds} s, grace period ${nodeMonitorGracePeriodSeconds} s`;
  return {
    act: 'ProfileChanged',
    about: aboutNode({ nodeName, uid }),
    atMs: nowMs,
    reason: `${from} to ${to}: ${because}; ${times}`,
    rule: 'profile',
    inputs: { labels, profiles: policy.profiles.map(({ name, nodeSelector }) => ({ name, nodeSelector })) },
    outcome: { profile: to },
  };
}

/** Added and removed taints, as `key:Effect`. */
function taintChange(
  before: readonly Readonly<Taint>[],
  after: readonly Readonly<Taint>[],
): { readonly added: readonly string[]; readonly removed: readonly string[] } {
  const textOf = ({ key, effect }: Readonly<Taint>): string => `${key}:${effect}`;
  const old = new Set(before.map(textOf));
  const current = new Set(after.map(textOf));
  return {
    added: [...current].filter((each) => !old.has(each)),
    removed: [...old].filter((each) => !current.has(each)),
  };
}

export const nodeReconcilerReplay: ReplayRules<NodeReconcilerInputs> = {
  plannedSilence: (inputs) => promiseChange(inputs) ?? NOTHING,
  profile: ({ labels, profiles }) => ({ profile: profileNameOf(labels, profiles) ?? DEFAULT_PROFILE }),
  noExecute({ ready, noExecute, totalDisruption }) {
    if (totalDisruption) return { lift: carriedNoExecute(noExecute) };
    const decision = decideNoExecute(ready, noExecute);
    if (decision.kind === 'lift') return { lift: decision.taints };
    return decision.kind === 'swap' ? { from: decision.from, to: decision.to } : NOTHING;
  },
  taints({ taints, conditions, unschedulable }) {
    return taintChange(taints, reconciledTaints({ taints, conditions: [...conditions], unschedulable }) ?? taints);
  },
};

/**
 * The taints that follow from a Node's conditions: NoSchedule taints by condition. While Ready is True, it has neither
 * our NoExecute taints nor the taints that rest on an answer of EC2. Any change of the Node adds and removes them.
 * Returns undefined if no taint changes.
 */
export function reconciledTaints(node: {
  readonly taints: TaintList;
  readonly conditions: readonly NodeCondition[] | undefined;
  readonly unschedulable: boolean;
}): Taint[] | undefined {
  const scheduling = reconcileNoSchedule(node);
  const lifted = readyStatusOf(node.conditions) === 'True' ? liftForReady(scheduling ?? node.taints) : undefined;
  return lifted ?? scheduling;
}

/** A Ready node is alive, even if the last answer of EC2 said otherwise. */
function liftForReady(taints: TaintList): Taint[] | undefined {
  const lifted = liftNoExecute(taints);
  return liftCloudTaints(lifted ?? taints) ?? lifted;
}
