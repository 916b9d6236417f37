/**
 * Decides from EC2's answer about a node's instance: delete the Node, add or remove the shutdown taint, or wait.
 *
 * EC2 is asked only about nodes that are not Ready. A Node is deleted in two cases (D11):
 *   - EC2 reports `terminated` or `shutting-down` once.
 *   - EC2 does not know the instance twice in a row, at least one period apart. Both answers come when the instance is
 *     older than `cloudYoungInstanceSeconds` (EC2 is eventually consistent after a launch), from the right account and
 *     region.
 * Errors and throttling never count as "does not exist". They also reset the count of answers in a row.
 *
 * Ready True overrides any answer: such a node only loses the shutdown taint. The rule does not apply to a machine
 * without an EC2 providerID, such as most edge machines.
 *
 * Source: staging/src/k8s.io/cloud-provider/controllers/nodelifecycle/node_lifecycle_controller.go; D11 in
 * docs/deviations.md. The whole truth table: docs/cloud-truth-table.md.
 */

import { defined } from '../../defined.ts';
import type { EventText } from '../../events/event-text.ts';
import type { ConditionStatus, Taint } from '../../kubernetes/kubernetes.ts';
import { TAINT_OUT_OF_SERVICE, TAINT_SHUTDOWN } from '../nodes/taint.ts';
import type { Policy } from '../policy.ts';
import type { CloudAnswer } from './instance.ts';

export const SHUTDOWN_TAINT: Readonly<Taint> = Object.freeze({
  key: TAINT_SHUTDOWN,
  effect: 'NoSchedule',
});

/** `source.component` of the events of this controller. */
export const CLOUD_NODE_COMPONENT = 'cloud-node-lifecycle-controller';

/** State kept from earlier answers about one node uid. An empty state is not stored. */
export interface CloudMemory {
  /** Time of the first counted `notFound` of the current sequence. */
  readonly notFoundSinceMs?: number;
  /** Time of the first `stopped` or `terminated` of the current sequence. Failed calls do not end the sequence. */
  readonly downSinceMs?: number;
  /** Launch time that EC2 last returned. */
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
   * Maximum age of an earlier `notFound` that this answer can confirm. After a longer pause the earlier answer does not
   * count. Milliseconds. Absent: no maximum.
   */
  readonly confirmWithinMs?: number;
}

export type CloudPolicy = Pick<Policy, 'nodeMonitorPeriodSeconds' | 'cloudYoungInstanceSeconds'>;

export type CloudDecision =
  | { readonly kind: 'delete'; readonly reason: string; readonly event: EventText }
  | { readonly kind: 'addShutdownTaint'; readonly reason: string }
  | { readonly kind: 'removeShutdownTaint'; readonly reason: string }
  /** Ask again in the next period: the answer may still lead to a deletion or a taint. */
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

/** The decision, and the state to store for the next one. */
export function decideCloud(
  question: CloudQuestion,
  nowMs: number,
  policy: CloudPolicy,
): { readonly decision: CloudDecision; readonly memory: CloudMemory } {
  const memory = remember(question, nowMs, policy);
  return { decision: decide(question, memory, nowMs, policy), memory };
}

/** Whether EC2 must know the instance by now. An instance of exactly `cloudYoungInstanceSeconds` is still young. */
function isOld(question: CloudQuestion, nowMs: number, policy: CloudPolicy): boolean {
  const bornAtMs = question.memory.launchedAtMs ?? question.createdAtMs;
  return nowMs - bornAtMs > policy.cloudYoungInstanceSeconds * 1_000;
}

function remember(question: CloudQuestion, nowMs: number, policy: CloudPolicy): CloudMemory {
  const { answer, memory, ready } = question;
  const launched = defined({ launchedAtMs: memory.launchedAtMs });
  if (ready === 'True') return launched;
  switch (answer.kind) {
    case 'found': {
      const launchedAtMs = answer.launchedAtMs ?? memory.launchedAtMs;
      const sameRun = launchedAtMs === memory.launchedAtMs || memory.launchedAtMs === undefined;
      const down = answer.state === 'stopped' || answer.state === 'terminated';
      return {
        ...defined({ launchedAtMs }),
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
      return { ...launched, ...defined({ downSinceMs: memory.downSinceMs }) };
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
            ? { kind: 'nothing', reason: 'instance is stopped, shutdown taint is present' }
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
        return { kind: 'wait', reason: 'EC2 does not know the instance, which may be too young' };
      }
      return nowMs - sinceMs >= policy.nodeMonitorPeriodSeconds * 1_000
        ? gone('EC2 did not know the instance twice in a row')
        : { kind: 'wait', reason: 'EC2 does not know the instance, asking again' };
    }
    case 'failed':
      return { kind: 'wait', reason: `EC2 request failed (${answer.cause}: ${answer.message})` };
    case 'foreign':
      return { kind: 'nothing', reason: answer.reason };
    case 'notEc2':
      return { kind: 'nothing', reason: answer.reason };
    default:
      return answer satisfies never;
  }
}

/** The out-of-service taint that we set. A user's taint has another value, or none. We never remove it. */
export const AUTOMATIC_OUT_OF_SERVICE_TAINT: Readonly<Taint> = Object.freeze({
  key: TAINT_OUT_OF_SERVICE,
  value: 'nodekeeper',
  effect: 'NoExecute',
});

/**
 * Whether to declare a node out of service because its instance has been down for long enough. Off by default.
 *
 * Pods of such a node are force-deleted and its volumes are detached. Our taint is removed when the node is Ready
 * again. With `automaticOutOfService: stopped`, stopped and terminated instances count. With `terminated` only
 * terminated ones.
 */
export function decideAutomaticOutOfService(
  question: {
    readonly ready: ConditionStatus | undefined;
    readonly answer: CloudAnswer;
    /** The memory that decideCloud returned for this answer. */
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
