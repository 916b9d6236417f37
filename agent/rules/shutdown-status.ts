/**
 * What a shutdown writes about the node and its pods, word for word: people and controllers match these.
 * Source: pkg/kubelet/nodeshutdown, pkg/kubelet/lifecycle.
 */
import { rfc3339 } from '../../shared/domain/rfc3339.ts';

export const NODE_SHUTDOWN_REASON = 'NodeShutdown';
/** In the Ready condition, which is False meanwhile. */
export const NODE_SHUTTING_DOWN = 'node is shutting down';

/** Why a pod that arrives meanwhile is not run. */
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

/** The pod's status as it is told to end: Failed, unless it had succeeded already. Reason and message are set on both. */
export function terminatedStatus(status: PodStatus, nowMs: number): PodStatus {
  const conditions: readonly Condition[] = Array.isArray(status['conditions']) ? status['conditions'] : [];
  const before = conditions.find(({ type }) => type === 'DisruptionTarget');
  const since = before?.status === 'True' ? before.lastTransitionTime : undefined;
  const target = {
    ...before,
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'TerminationByKubelet',
    message: TERMINATED_MESSAGE,
    lastTransitionTime: since ?? rfc3339(nowMs),
  };
  return {
    ...status,
    phase: status['phase'] === 'Succeeded' ? 'Succeeded' : 'Failed',
    reason: TERMINATED_REASON,
    message: TERMINATED_MESSAGE,
    conditions:
      before === undefined
        ? [...conditions, target]
        : conditions.map((condition) => (condition === before ? target : condition)),
  };
}
