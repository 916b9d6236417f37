/**
 * Conditions of silent nodes, and of the pods on them.
 * Source: tryUpdateNodeHealth in pkg/controller/nodelifecycle/node_lifecycle_controller.go, MarkPodsNotReady in
 * pkg/controller/util/node/controller_utils.go. Reasons and messages are literal: clients match them.
 */
import type { ConditionStatus, NodeCondition } from '../../kubernetes/kubernetes.ts';
import { rfc3339 } from '../../kubernetes/rfc3339.ts';

export const READY = 'Ready';
/**
 * Conditions that are set to Unknown when a node is silent, in this order. NetworkUnavailable is not among them,
 * because cloud and network controllers own it, not the kubelet.
 */
export const MARKED_CONDITIONS = [READY, 'MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;

export const REASON_NEVER_UPDATED = 'NodeStatusNeverUpdated';
export const REASON_UNKNOWN = 'NodeStatusUnknown';
const MESSAGE_NEVER_UPDATED = 'Kubelet never posted node status.';
const MESSAGE_UNKNOWN = 'Kubelet stopped posting node status.';

export const conditionOf = (
  conditions: readonly NodeCondition[] | undefined,
  type: string,
): Readonly<NodeCondition> | undefined => conditions?.find((condition) => condition.type === type);

/** Status of the Ready condition; undefined when there is none. */
export const readyStatusOf = (conditions: readonly NodeCondition[] | undefined): ConditionStatus | undefined =>
  conditionOf(conditions, READY)?.status;

/**
 * The conditions of a node that is silent. Undefined when Ready is Unknown already: then nothing is written, not even a
 * missing pressure condition.
 */
export function markUnknown(
  conditions: readonly NodeCondition[] | undefined,
  at: { readonly nowMs: number; readonly createdAtMs: number },
): NodeCondition[] | undefined {
  if (readyStatusOf(conditions) === 'Unknown') return undefined;
  const now = rfc3339(at.nowMs);
  const marked = (conditions ?? []).map(
    (condition): NodeCondition =>
      condition.status !== 'Unknown' && MARKED_CONDITIONS.some((type) => type === condition.type)
        ? {
            ...condition,
            status: 'Unknown',
            reason: REASON_UNKNOWN,
            message: MESSAGE_UNKNOWN,
            lastTransitionTime: now,
          }
        : { ...condition },
  );
  for (const type of MARKED_CONDITIONS) {
    if (conditionOf(conditions, type) !== undefined) continue;
    marked.push({
      type,
      status: 'Unknown',
      reason: REASON_NEVER_UPDATED,
      message: MESSAGE_NEVER_UPDATED,
      lastHeartbeatTime: rfc3339(at.createdAtMs),
      lastTransitionTime: now,
    });
  }
  return marked;
}

/** The fields of a pod condition that these rules read. Other fields are not changed. */
export interface PodConditionParts {
  type: string;
  status: string;
  lastTransitionTime?: string | null;
}

/**
 * A pod's conditions with Ready False. Undefined when there is nothing to write: no Ready condition, or False already.
 * To be followed by the pod's event (event-text.ts, podNotReady).
 */
export function markPodNotReady<C extends PodConditionParts>(
  conditions: readonly C[] | undefined,
  nowMs: number,
): C[] | undefined {
  const ready = conditions?.find((condition) => condition.type === READY);
  if (conditions === undefined || ready === undefined || ready.status === 'False') return undefined;
  return conditions.map((condition) =>
    condition === ready ? { ...condition, status: 'False', lastTransitionTime: rfc3339(nowMs) } : condition,
  );
}

/**
 * Whether a pod that was just bound to a node is set not ready immediately. `ready`: stored Ready status of the node.
 * False when it is undefined: the node has no Node object or no Ready condition.
 */
export const marksPodsBoundNow = (ready: ConditionStatus | undefined): boolean =>
  ready !== undefined && ready !== 'True';
