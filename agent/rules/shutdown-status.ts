/**
 * The texts of a shutdown in the status of the node and its pods. They are exactly those of upstream.
 * Source: pkg/kubelet/nodeshutdown, pkg/kubelet/lifecycle.
 */
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';

export const NODE_SHUTDOWN_REASON = 'NodeShutdown';
/** In the Ready condition, which is False during the shutdown. */
export const NODE_SHUTTING_DOWN = 'node is shutting down';

/** Reason and message of a pod that is rejected during the shutdown. */
export const SHUTDOWN_REFUSAL = Object.freeze({
  reason: NODE_SHUTDOWN_REASON,
  message: 'Pod was rejected as the node is shutting down.',
});

const TERMINATED_REASON = 'Terminated';
const TERMINATED_MESSAGE = 'Pod was terminated in response to imminent node shutdown.';

export type PodStatus = Readonly<Record<string, unknown>>;

interface Condition {
  readonly type?: unknown;
  readonly status?: unknown;
  readonly lastTransitionTime?: unknown;
}

/** The status with the condition DisruptionTarget, which marks a pod that its node terminates. */
export function disruptedStatus(status: PodStatus, message: string, nowMs: number): PodStatus {
  const conditions: readonly Condition[] = Array.isArray(status['conditions']) ? status['conditions'] : [];
  const before = conditions.find(({ type }) => type === 'DisruptionTarget');
  const since = before?.status === 'True' ? before.lastTransitionTime : undefined;
  const target = {
    ...before,
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'TerminationByKubelet',
    message,
    lastTransitionTime: since ?? rfc3339(nowMs),
  };
  return {
    ...status,
    conditions:
      before === undefined
        ? [...conditions, target]
        : conditions.map((condition) => (condition === before ? target : condition)),
  };
}

/**
 * The status of a pod that a shutdown terminates: Failed, unless it had succeeded. Reason and message are set on both.
 */
export const terminatedStatus = (status: PodStatus, nowMs: number): PodStatus => ({
  ...disruptedStatus(status, TERMINATED_MESSAGE, nowMs),
  phase: status['phase'] === 'Succeeded' ? 'Succeeded' : 'Failed',
  reason: TERMINATED_REASON,
  message: TERMINATED_MESSAGE,
});
