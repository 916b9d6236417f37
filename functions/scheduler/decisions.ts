/** Decision records of the scheduler: where a pod was bound, why it was not, and which pods were deleted for it. */
import {
  aboutPod,
  type DecisionDraft,
  type DraftOf,
  FLEET,
  fullPolicy,
  policyPart,
  type RecordedPolicy,
  type ReplayRules,
} from '../../shared/decisions/decision-record.ts';
import { defined } from '../../shared/defined.ts';
import { gateReasonsText } from '../../shared/events/event-text.ts';
import { type GateRecord, gateVerdictFor, UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import { overProfiles } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { comparedAmounts, type ResourceAmount } from '../../shared/scheduling/requests.rule.ts';
import type { NodeState } from '../../shared/scheduling/snapshot.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { availability, NO_NODES } from './failure-message.rule.ts';
import { type Candidate, pickCandidate } from './preemption.rule.ts';
import { type Fit, inOrder, type NoFit, type ScoredNode, totalOf } from './rule.ts';

type ReasonCounts = Readonly<Record<string, number>>;

/** cpu in millicores; the others in whole units, such as bytes. */
export interface Shortage extends ResourceAmount {
  readonly nodeName: string;
}

/** When the pod entered the queue, in epoch milliseconds, and the number of this attempt, from 1. */
export interface QueueHistory {
  readonly queuedAtMs: number;
  readonly attempt: number;
}

export interface SchedulerInputs {
  /** Choice among the best nodes. */
  readonly podPlacement: {
    readonly podUid: string;
    /** Empty: only this node was feasible, or the pod was nominated to it. */
    readonly best: readonly Pick<ScoredNode, 'nodeName' | 'scores'>[];
    readonly nodeName: string;
    /** Not read by the rule: number of nodes, of those that were filtered, and of those that passed. */
    readonly nodes: number;
    readonly examined: number;
    readonly feasible: number;
    /** Not read by the rule: nodes by reason. */
    readonly rejected: ReasonCounts;
    /** Not read by the rule. */
    readonly waitedMs: number;
    readonly attempt: number;
  };
  /** The message from the counts. */
  readonly podRejection: {
    readonly nodes: number;
    readonly rejected: ReasonCounts;
    /** Why no node can run the pod; absent: each node has its own reason. */
    readonly ofPod?: string;
    readonly preemption: string;
    /** Not read by the rule: up to three nodes per reason. */
    readonly examples: Readonly<Record<string, readonly string[]>>;
    /**
     * Not read by the rule: some resources that are short, as on the node with most of it free. Absent: none of the
     * first COMPARED_MAX. `rejected` counts up to 64 reasons per node, whichever resources are short.
     */
    readonly shortages?: readonly Shortage[];
    readonly waitedMs: number;
    readonly attempt: number;
  };
  /** gateVerdictFor. */
  readonly schedulingGate: Partial<Pick<GateRecord, 'lastTickAtMs'>> & {
    readonly reasons: GateRecord['reasons'];
    readonly policy: RecordedPolicy;
    /** Not read by the rule: number of nodes, and of those with a recent heartbeat. */
    readonly nodes: number;
    readonly recent: number;
  };
  /** pickCandidate. */
  readonly podPreemption: {
    readonly podUid: string;
    readonly candidates: readonly {
      readonly nodeName: string;
      readonly violations: number;
      readonly victims: readonly Pick<SchedulablePod, 'key' | 'priority' | 'startedAtMs'>[];
    }[];
  };
}

export type SchedulerDraft =
  | DraftOf<SchedulerInputs>
  | (DecisionDraft & {
      readonly rule: 'fact';
      readonly act: 'PodPreempted';
      readonly inputs: { readonly by: string; readonly nodeName: string };
    });

/** Candidates and victims in one record. */
const CANDIDATES_MAX = 5;
const VICTIMS_MAX = 20;
const EXAMPLES_MAX = 3;
const SHORTAGES_MAX = 4;
/** Resources of one node that are compared. A pod may request thousands. */
const COMPARED_MAX = 64;

const aboutOf = ({ namespace, name, uid }: Pick<SchedulablePod, 'namespace' | 'name' | 'uid'>) =>
  aboutPod({ namespace, name, podUid: uid });

function reasonCounts(rejections: NoFit['rejections']): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { reasons } of rejections.values())
    for (const reason of reasons) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}

function examplesOf(rejections: NoFit['rejections']): Record<string, string[]> {
  const examples: Record<string, string[]> = {};
  for (const [nodeName, { reasons }] of rejections) {
    for (const reason of reasons) {
      const names = examples[reason] ?? [];
      examples[reason] = names;
      if (names.length < EXAMPLES_MAX) names.push(nodeName);
    }
  }
  return examples;
}

const waitOf = ({ queuedAtMs, attempt }: QueueHistory, nowMs: number) => ({
  waitedMs: Math.max(0, nowMs - queuedAtMs),
  attempt,
});

/** For each resource that is short on a node: the node with most of it free. */
function shortagesOf(
  pod: SchedulablePod,
  rejections: NoFit['rejections'],
  nodes: ReadonlyMap<string, NodeState>,
): readonly Shortage[] {
  const best = new Map<string, Shortage>();
  for (const [nodeName, { plugin }] of rejections) {
    const state = nodes.get(nodeName);
    if (plugin !== 'NodeResourcesFit' || state === undefined) continue;
    let compared = 0;
    for (const amount of comparedAmounts(pod.requests, state.node.allocatable, state.used)) {
      const { name, requested, allocatable, used } = amount;
      const known = best.get(name);
      const isShort = requested > allocatable - used;
      if (isShort && (known === undefined || allocatable - used > known.allocatable - known.used)) {
        best.set(name, { ...amount, nodeName });
      }
      compared += 1;
      if (compared >= COMPARED_MAX) break;
    }
  }
  return [...best.values()].slice(0, SHORTAGES_MAX);
}

const scoreText = ({ nodeName, total }: ScoredNode): string => `${nodeName} ${total}`;

export function placementDraft(
  pod: SchedulablePod,
  fit: Fit,
  at: { readonly nowMs: number; readonly nodes: number; readonly queue: QueueHistory },
): SchedulerDraft {
  const { nodeName, best, examined, feasible, rejections } = fit;
  const { nowMs, nodes, queue } = at;
  const why =
    best.length === 0
      ? `${feasible} of ${examined} examined nodes is feasible`
      : `${feasible} of ${examined} examined nodes are feasible; best scores: ${best.map(scoreText).join(', ')}`;
  return {
    act: 'PodScheduled',
    about: aboutOf(pod),
    atMs: nowMs,
    reason: `bound to ${nodeName}: ${why}`,
    rule: 'podPlacement',
    inputs: {
      podUid: pod.uid,
      best: best.map(({ nodeName: name, scores }) => ({ nodeName: name, scores })),
      nodeName,
      nodes,
      examined,
      feasible,
      rejected: reasonCounts(rejections),
      ...waitOf(queue, nowMs),
    },
    outcome: { nodeName },
  };
}

export function rejectionDraft(
  pod: SchedulablePod,
  noFit: NoFit,
  at: {
    readonly nowMs: number;
    readonly nodes: ReadonlyMap<string, NodeState>;
    readonly message: string;
    readonly preemption: string;
    readonly queue: QueueHistory;
  },
): SchedulerDraft {
  const { nowMs, nodes, message, preemption, queue } = at;
  const { rejections } = noFit;
  const shortages = shortagesOf(pod, rejections, nodes);
  return {
    act: 'PodUnschedulable',
    about: aboutOf(pod),
    atMs: nowMs,
    reason: message,
    rule: 'podRejection',
    inputs: {
      nodes: nodes.size,
      rejected: reasonCounts(rejections),
      ...defined({ ofPod: rejections.size === 0 ? noFit.message : undefined }),
      preemption,
      examples: examplesOf(rejections),
      ...(shortages.length > 0 && { shortages }),
      ...waitOf(queue, nowMs),
    },
    outcome: { message },
  };
}

export function preemptionDraft(
  pod: SchedulablePod,
  { chosen, candidates }: { readonly chosen: Candidate; readonly candidates: readonly Candidate[] },
  nowMs: number,
): SchedulerDraft {
  const others = candidates.filter((each) => each !== chosen).slice(0, CANDIDATES_MAX - 1);
  const recorded = [chosen, ...others].map(({ nodeName, violations, victims }) => ({
    nodeName,
    violations,
    victims: victims
      .slice(0, VICTIMS_MAX)
      .map(({ key, priority, startedAtMs }) => ({ key, priority, ...defined({ startedAtMs }) })),
  }));
  const names = chosen.victims.slice(0, VICTIMS_MAX).map(({ key }) => key);
  return {
    act: 'PodPreempting',
    about: aboutOf(pod),
    atMs: nowMs,
    reason: `nominated to ${chosen.nodeName}: ${chosen.victims.length} pods of lower priority are deleted (${names.join(', ')})`,
    rule: 'podPreemption',
    inputs: { podUid: pod.uid, candidates: recorded as SchedulerInputs['podPreemption']['candidates'] },
    outcome: { nodeName: chosen.nodeName },
  };
}

export const victimDraft = (
  victim: SchedulablePod,
  of: { readonly preemptor: SchedulablePod; readonly nodeName: string; readonly nowMs: number },
): SchedulerDraft => ({
  act: 'PodPreempted',
  about: aboutOf(victim),
  atMs: of.nowMs,
  reason: `deleted for pod ${of.preemptor.key} of priority ${of.preemptor.priority} on node ${of.nodeName}; own priority ${victim.priority}`,
  rule: 'fact',
  inputs: { by: of.preemptor.uid, nodeName: of.nodeName },
  outcome: {},
});

/** The safety gate restricts the scheduler. Once for each time that it is closed. */
export function heldDraft(
  gate: GateRecord,
  at: { readonly nowMs: number; readonly policy: Policy; readonly nodes: number; readonly recent: number },
): SchedulerDraft {
  const { nowMs, policy, nodes, recent } = at;
  const verdict = gateVerdictFor(gate, { nowMs, policy });
  const reasons = verdict.kind === 'holding' ? gateReasonsText(verdict.reasons) : '';
  const { lastTickAtMs } = gate;
  return {
    act: 'SchedulingHeld',
    about: FLEET,
    atMs: nowMs,
    reason: `safety gate closed: ${reasons}; pods are bound only to the ${recent} of ${nodes} nodes with a recent heartbeat, and no pod is preempted`,
    rule: 'schedulingGate',
    inputs: {
      reasons: gate.reasons,
      ...defined({ lastTickAtMs }),
      policy: {
        ...policyPart(policy, 'tickGate', 'nodeMonitorPeriodSeconds'),
        nodeMonitorGracePeriodSeconds: overProfiles(policy, 'nodeMonitorGracePeriodSeconds', Math.min),
      },
      nodes,
      recent,
    },
    outcome: { held: true },
  };
}

/** The whole text of the condition. */
export const withPreemption = (message: string, preemption: string): string =>
  preemption === '' ? message : `${message} preemption: ${preemption}`;

export const schedulerReplay: ReplayRules<SchedulerInputs> = {
  podPlacement({ podUid, best, nodeName }) {
    const scored = best.map((each) => ({ ...each, total: totalOf(each.scores) }));
    return { nodeName: inOrder(scored, podUid)[0]?.nodeName ?? nodeName };
  },
  podRejection({ nodes, rejected, ofPod, preemption }) {
    const message = ofPod ?? (nodes === 0 ? NO_NODES : availability(nodes, new Map(Object.entries(rejected))));
    return { message: withPreemption(message, preemption) };
  },
  schedulingGate({ reasons, lastTickAtMs, policy }, { atMs }) {
    const gate = { ...UNTRIED_GATE, reasons, lastTickAtMs };
    return { held: gateVerdictFor(gate, { nowMs: atMs, policy: fullPolicy(policy) }).kind === 'holding' };
  },
  podPreemption: ({ podUid, candidates }) => ({
    nodeName: pickCandidate(candidates as unknown as readonly Candidate[], podUid).nodeName,
  }),
};
