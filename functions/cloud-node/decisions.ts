/** Decision records of cloud-node: what was done with a Node because of its EC2 instance. */
import {
  aboutNode,
  type DecisionAct,
  type DraftOf,
  fullPolicy,
  type NodeIdentity,
  policyPart,
  type RecordedPolicy,
  type ReplayRules,
} from '../../shared/decisions/decision-record.ts';
import { defined } from '../../shared/defined.ts';
import type { CloudAnswer } from '../../shared/fleet/instances/instance.ts';
import {
  type CloudDecision,
  type CloudQuestion,
  decideAutomaticOutOfService,
  decideCloud,
} from '../../shared/fleet/instances/rule.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';

type OutOfServiceQuestion = Parameters<typeof decideAutomaticOutOfService>[0];

interface CloudNodeInputs {
  /** decideCloud. */
  readonly cloud: { readonly question: Omit<CloudQuestion, 'nodeName'>; readonly policy: RecordedPolicy };
  /** decideAutomaticOutOfService. */
  readonly outOfService: { readonly question: OutOfServiceQuestion; readonly policy: RecordedPolicy };
}

export type CloudNodeDraft = DraftOf<CloudNodeInputs>;

const ACTS: Readonly<Record<CloudDecision['kind'], DecisionAct>> = {
  delete: 'NodeDeleted',
  addShutdownTaint: 'ShutdownTaintAdded',
  removeShutdownTaint: 'ShutdownTaintRemoved',
  wait: 'NodeKept',
  nothing: 'NodeKept',
};

const EFFECTS: Readonly<Record<CloudDecision['kind'], string>> = {
  delete: 'the Node is deleted',
  addShutdownTaint: 'the shutdown taint is added',
  removeShutdownTaint: 'the shutdown taint is removed',
  wait: 'the Node is kept, and EC2 is asked again',
  nothing: 'the Node is kept',
};

const answerText = (answer: CloudAnswer): string => {
  switch (answer.kind) {
    case 'found':
      return `EC2 instance state ${answer.state}`;
    case 'notFound':
      return 'EC2 does not know the instance';
    case 'failed':
      return `the EC2 request failed (${answer.cause})`;
    case 'foreign':
    case 'notEc2':
      return 'EC2 is not asked';
  }
};

export function cloudDraft(
  decision: CloudDecision,
  question: CloudQuestion & { readonly uid: string },
  nowMs: number,
  policy: Policy,
): CloudNodeDraft {
  const { nodeName, uid, ready, answer, memory, createdAtMs, hasShutdownTaint, confirmWithinMs } = question;
  return {
    act: ACTS[decision.kind],
    about: aboutNode({ nodeName, uid }),
    atMs: nowMs,
    // A Ready node is decided on without the answer.
    reason: `${answer.kind === 'found' && ready !== 'True' ? answerText(answer) : decision.reason}: ${EFFECTS[decision.kind]}`,
    rule: 'cloud',
    inputs: {
      question: { ready, answer, memory, createdAtMs, hasShutdownTaint, ...defined({ confirmWithinMs }) },
      policy: policyPart(policy, 'nodeMonitorPeriodSeconds', 'cloudYoungInstanceSeconds'),
    },
    outcome: { kind: decision.kind, why: decision.reason },
  };
}

/** Of a deletion that finalizers delay: the Node is only marked. */
export const heldDraft = <Draft extends Pick<CloudNodeDraft, 'act' | 'reason'>>(draft: Draft): Draft => ({
  ...draft,
  act: 'NodeKept',
  reason: draft.reason.replace(EFFECTS.delete, 'the Node is marked for deletion, which its finalizers delay'),
});

export function outOfServiceDraft(
  change: 'add' | 'remove',
  node: NodeIdentity & { readonly nowMs: number; readonly policy: Policy },
  question: OutOfServiceQuestion,
): CloudNodeDraft {
  const { ready, answer, memory, outOfServiceTaint } = question;
  const since = rfc3339(memory.downSinceMs ?? node.nowMs);
  return {
    act: change === 'add' ? 'OutOfServiceAdded' : 'OutOfServiceRemoved',
    about: aboutNode(node),
    atMs: node.nowMs,
    reason:
      change === 'add'
        ? `${answerText(answer)} since ${since}: out-of-service taint added; its pods and volumes are released`
        : 'Ready is True: out-of-service taint removed',
    rule: 'outOfService',
    inputs: {
      question: { ready, answer, memory, outOfServiceTaint },
      policy: policyPart(node.policy, 'automaticOutOfService', 'automaticOutOfServiceAfterSeconds'),
    },
    outcome: { change },
  };
}

export const cloudNodeReplay: ReplayRules<CloudNodeInputs> = {
  cloud({ question, policy }, { about, atMs }) {
    const asked = { ...question, nodeName: about.name, ready: question.ready };
    const { decision } = decideCloud(asked, atMs, fullPolicy(policy));
    return { kind: decision.kind, why: decision.reason };
  },
  outOfService({ question, policy }, { atMs }) {
    return { change: decideAutomaticOutOfService(question, atMs, fullPolicy(policy)) };
  },
};
