/**
 * What EC2's word about a node's instance means for the node: delete it, set or lift the shutdown taint, or wait.
 *
 * Only nodes that are not Ready are asked about. A Node is deleted when EC2 says `terminated` or `shutting-down` once, or
 * does not know the instance twice (D11): in a row, at least one period apart, both after the instance is older than
 * `cloudYoungInstanceSeconds` (EC2 is eventually consistent after a launch), and only in the right account and region.
 * Errors and throttling are never "gone"; they also break the row, so that two answers of one mind stand side by side.
 *
 * Ready True wins over anything EC2 says: such a node only loses the shutdown taint. A machine without an EC2
 * providerID (most of the edge) is nothing this rule ever touches.
 *
 * Source: staging/src/k8s.io/cloud-provider/controllers/nodelifecycle/node_lifecycle_controller.go; D11 in
 * docs/deviations.md. The whole truth table: docs/cloud-truth-table.md.
 */

import type { CloudAnswer } from '../../domain/cloud/instance.ts';
import type { EventText } from '../../domain/events/event-text.ts';
import type { ConditionStatus, Taint } from '../../domain/kubernetes.ts';
import { TAINT_OUT_OF_SERVICE, TAINT_SHUTDOWN } from '../../domain/nodes/taint.ts';
import type { Policy } from '../../domain/policy.ts';

export const SHUTDOWN_TAINT: Readonly<Taint> = Object.freeze({
  key: TAINT_SHUTDOWN,
  effect: 'NoSchedule',
});

/** `source.component` of the events of this controller. */
export const CLOUD_NODE_COMPONENT = 'cloud-node-lifecycle-controller';

/** What is kept of earlier answers about one node uid; an empty record needs no storing. */
export interface CloudMemory {
  /** Time of the first counted `notFound` of the present row. */
  readonly notFoundSinceMs?: number;
  /** Time of the first `stopped` or `terminated` of the present row; failed calls do not end it. */
  readonly downSinceMs?: number;
  /** Launch time as EC2 last told it. */
  readonly launchedAtMs?: number;
}

export interface CloudQuestion {
  readonly nodeName: string;
  /** Status of the Ready condition; absent counts as Unknown. */
  readonly ready: ConditionStatus | undefined;
  readonly answer: CloudAnswer;
  readonly memory: CloudMemory;
  /** Creation of the Node, server time. */
  readonly createdAtMs: number;
  readonly hasShutdownTaint: boolean;
  /**
   * An earlier `notFound` counts only if it is no older: when we did not ask for long, what EC2 said before says nothing about
   * the time between. Milliseconds; absent: however old.
   */
  readonly confirmWithinMs?: number;
}

export type CloudPolicy = Pick<Policy, 'nodeMonitorPeriodSeconds' | 'cloudYoungInstanceSeconds'>;

export type CloudDecision =
  | { readonly kind: 'delete'; readonly reason: string; readonly event: EventText }
  | { readonly kind: 'addShutdownTaint'; readonly reason: string }
  | { readonly kind: 'removeShutdownTaint'; readonly reason: string }
  /** Ask again next period: this may still become a deletion or a taint. */
  | { readonly kind: 'wait'; readonly reason: string }
  | { readonly kind: 'nothing'; readonly reason: string };

export const deletingNodeEvent = (nodeName: string): EventText => ({
  type: 'Normal',
  reason: 'DeletingNode',
  message: `Deleting node ${nodeName} because it does not exist in the cloud provider`,
  source: CLOUD_NODE_COMPONENT,
});

export const deletingNodeFailedEvent = (nodeName: string, error: string): EventText => ({
  type: 'Warning',
  reason: 'DeletingNodeFailed',
  message: `Failed deleting node ${nodeName}: ${error}`,
  source: CLOUD_NODE_COMPONENT,
});

/** The decision, and what to remember for the next one. */
export function decideCloud(
  question: CloudQuestion,
  nowMs: number,
  policy: CloudPolicy,
): { readonly decision: CloudDecision; readonly memory: CloudMemory } {
  const memory = remember(question, nowMs, policy);
  return { decision: decide(question, memory, nowMs, policy), memory };
}

/** Older than the time in which EC2 may not know an instance yet. Strictly: exactly that old is still young. */
function isOld(question: CloudQuestion, nowMs: number, policy: CloudPolicy): boolean {
  const bornAtMs = question.memory.launchedAtMs ?? question.createdAtMs;
  return nowMs - bornAtMs > policy.cloudYoungInstanceSeconds * 1_000;
}

function remember(question: CloudQuestion, nowMs: number, policy: CloudPolicy): CloudMemory {
  const { answer, memory, ready } = question;
  const launched = memory.launchedAtMs === undefined ? {} : { launchedAtMs: memory.launchedAtMs };
  if (ready === 'True') return launched;
  switch (answer.kind) {
    case 'found': {
      const launchedAtMs = answer.launchedAtMs ?? memory.launchedAtMs;
      const sameRun = launchedAtMs === memory.launchedAtMs || memory.launchedAtMs === undefined;
      const down = answer.state === 'stopped' || answer.state === 'terminated';
      return {
        ...(launchedAtMs === undefined ? {} : { launchedAtMs }),
        ...(down ? { downSinceMs: (sameRun ? memory.downSinceMs : undefined) ?? nowMs } : {}),
      };
    }
    case 'notFound': {
      if (!isOld(question, nowMs, policy)) return launched;
      const sinceMs = memory.notFoundSinceMs ?? nowMs;
      const isStale = nowMs - sinceMs > (question.confirmWithinMs ?? Number.POSITIVE_INFINITY);
      return { ...launched, notFoundSinceMs: isStale ? nowMs : sinceMs };
    }
    case 'failed':
      return { ...launched, ...(memory.downSinceMs === undefined ? {} : { downSinceMs: memory.downSinceMs }) };
    case 'foreign':
    case 'notEc2':
      return launched;
    default:
      return answer satisfies never;
  }
}

function decide(question: CloudQuestion, memory: CloudMemory, nowMs: number, policy: CloudPolicy): CloudDecision {
  const { answer, ready, hasShutdownTaint, nodeName } = question;
  if (ready === 'True') {
    return hasShutdownTaint
      ? { kind: 'removeShutdownTaint', reason: 'node is Ready' }
      : { kind: 'nothing', reason: 'node is Ready' };
  }
  const gone = (reason: string): CloudDecision => ({ kind: 'delete', reason, event: deletingNodeEvent(nodeName) });
  switch (answer.kind) {
    case 'found':
      switch (answer.state) {
        case 'terminated':
        case 'shutting-down':
          return gone(`instance is ${answer.state}`);
        case 'stopped':
          return hasShutdownTaint
            ? { kind: 'nothing', reason: 'instance is stopped, shutdown taint is there' }
            : { kind: 'addShutdownTaint', reason: 'instance is stopped' };
        case 'stopping':
          return { kind: 'wait', reason: 'instance is stopping' };
        case 'pending':
        case 'running':
          return { kind: 'nothing', reason: `instance is ${answer.state}` };
        default:
          return answer.state satisfies never;
      }
    case 'notFound': {
      const sinceMs = memory.notFoundSinceMs;
      if (sinceMs === undefined) {
        return { kind: 'wait', reason: 'EC2 does not know the instance, which may be too young to be known' };
      }
      return nowMs - sinceMs >= policy.nodeMonitorPeriodSeconds * 1_000
        ? gone('EC2 did not know the instance twice in a row')
        : { kind: 'wait', reason: 'EC2 does not know the instance, asking once more' };
    }
    case 'failed':
      return { kind: 'wait', reason: `EC2 gave no answer (${answer.cause}: ${answer.message})` };
    case 'foreign':
      return { kind: 'nothing', reason: answer.reason };
    case 'notEc2':
      return { kind: 'nothing', reason: answer.reason };
    default:
      return answer satisfies never;
  }
}

/** The out-of-service taint as we set it; a person's has another value, or none, and is never lifted by us. */
export const AUTOMATIC_OUT_OF_SERVICE_TAINT: Readonly<Taint> = Object.freeze({
  key: TAINT_OUT_OF_SERVICE,
  value: 'nodekeeper',
  effect: 'NoExecute',
});

/**
 * Whether to declare a node out of service because EC2 has said for long enough that its instance is down (off by
 * default): its pods are then removed without their node's consent, and its volumes are detached. Lifted when the node
 * is Ready again, if it was ours. With `stopped`, both stopped and terminated instances count; with `terminated` only
 * those.
 */
export function decideAutomaticOutOfService(
  question: {
    readonly ready: ConditionStatus | undefined;
    readonly answer: CloudAnswer;
    /** As decideCloud returned it for this answer. */
    readonly memory: CloudMemory;
    readonly outOfServiceTaint: 'absent' | 'ours' | 'others';
  },
  nowMs: number,
  policy: Pick<Policy, 'automaticOutOfService' | 'automaticOutOfServiceAfterSeconds'>,
): 'add' | 'remove' | 'keep' {
  const { answer, memory, outOfServiceTaint, ready } = question;
  if (ready === 'True') return outOfServiceTaint === 'ours' ? 'remove' : 'keep';
  if (policy.automaticOutOfService === 'off' || outOfServiceTaint !== 'absent' || answer.kind !== 'found')
    return 'keep';
  const counts =
    answer.state === 'terminated' || (answer.state === 'stopped' && policy.automaticOutOfService === 'stopped');
  if (!counts || memory.downSinceMs === undefined) return 'keep';
  return nowMs - memory.downSinceMs >= policy.automaticOutOfServiceAfterSeconds * 1_000 ? 'add' : 'keep';
}
