/**
 * One sync of a ReplicaSet: how many pods to create, which to delete, and its status. Pure.
 * Source: pkg/controller/replicaset/{replica_set,replica_set_utils}.go.
 */
import { defined } from '../../../shared/defined.ts';
import { availableAfterMs, isActive, isAvailable, isHeld, type OwnedPod } from '../pods/owned-pod.rule.ts';
import { failureConditions, isSameConditions } from '../pods/replica-failure.rule.ts';
import type { SyncFailure } from '../pods/sync-failure.rule.ts';
import type { KubeReplicaSet, WorkloadStatus } from '../workload-types.ts';
import { firstToDelete } from './deletion-order.rule.ts';

/** Creations, and deletions, of one sync. */
export const BURST_PODS = 500;

export interface ReplicaSetSync {
  readonly replicaSet: KubeReplicaSet;
  /** Pods that it controls, inactive ones too. */
  readonly pods: readonly OwnedPod[];
  /** Active pods of all ReplicaSets with the same controller, this one included; none without a controller. */
  readonly relatedPods: readonly OwnedPod[];
  readonly nowMs: number;
}

export interface ReplicaSetDecision {
  readonly create: number;
  readonly remove: readonly OwnedPod[];
  /** When a Ready pod becomes available. Epoch milliseconds; absent: none is waited for. */
  readonly lookAgainAtMs?: number;
}

export function decideReplicas({ replicaSet, pods, relatedPods, nowMs }: ReplicaSetSync): ReplicaSetDecision {
  const { metadata, spec } = replicaSet;
  const active = pods.filter(isActive);
  const lookAgainAtMs = nextAvailableMs(active, spec?.minReadySeconds ?? 0, nowMs);
  const again = defined({ lookAgainAtMs });
  if (metadata.deletionTimestamp !== undefined) return { create: 0, remove: [], ...again };
  const wanted = spec?.replicas ?? 1;
  if (active.length <= wanted) {
    const missing = missingPods({ replicas: wanted, active: active.length, held: pods.filter(isHeld).length });
    return { create: Math.min(missing, BURST_PODS), remove: [], ...again };
  }
  const surplus = Math.min(active.length - wanted, BURST_PODS);
  return { create: 0, remove: firstToDelete(active, surplus, { relatedPods, nowMs }), ...again };
}

/** Exported for the replay of decisions. `held`: terminating pods that must not run twice. */
export const missingPods = (of: { readonly replicas: number; readonly active: number; readonly held: number }) =>
  Math.max(0, of.replicas - of.active - of.held);

function nextAvailableMs(active: readonly OwnedPod[], minReadySeconds: number, nowMs: number): number | undefined {
  const waiting = active.flatMap((pod) => {
    const afterMs = availableAfterMs(pod, minReadySeconds);
    // It is available one millisecond after the end of the time.
    return afterMs === undefined || afterMs < nowMs ? [] : [afterMs + 1];
  });
  return waiting.length === 0 ? undefined : Math.min(...waiting);
}

/**
 * The status by the pods before this sync's creations and deletions. Undefined: the stored one is equal.
 *
 * `failure`: what the creations or deletions of this sync ended with.
 */
export function replicaSetStatus(
  { replicaSet, pods, nowMs }: Omit<ReplicaSetSync, 'relatedPods'>,
  failure: SyncFailure | undefined,
): WorkloadStatus | undefined {
  const { metadata, spec, status = {} } = replicaSet;
  const active = pods.filter(isActive);
  const templateLabels = Object.entries(spec?.template?.metadata?.labels ?? {});
  const minReadySeconds = spec?.minReadySeconds ?? 0;
  const next: WorkloadStatus = {
    replicas: active.length,
    ...counted('fullyLabeledReplicas', active, ({ labels }) =>
      templateLabels.every(([key, value]) => labels[key] === value),
    ),
    ...counted('readyReplicas', active, ({ ready }) => ready),
    ...counted('availableReplicas', active, (pod) => isAvailable(pod, minReadySeconds, nowMs)),
    ...defined({
      observedGeneration: metadata.generation,
      conditions: failureConditions(status.conditions, failure, nowMs),
    }),
  };
  return isSameStatus(status, next) ? undefined : next;
}

/** Zero is left out, as Go's encoding of these fields does. */
function counted(field: string, pods: readonly OwnedPod[], counts: (pod: OwnedPod) => boolean) {
  const count = pods.filter(counts).length;
  return count === 0 ? {} : { [field]: count };
}

const NUMBERS = [
  'replicas',
  'fullyLabeledReplicas',
  'readyReplicas',
  'availableReplicas',
  'observedGeneration',
] as const;

const isSameStatus = (left: WorkloadStatus, right: WorkloadStatus): boolean =>
  NUMBERS.every((field) => (left[field] ?? 0) === (right[field] ?? 0)) &&
  isSameConditions(left.conditions, right.conditions);
