/**
 * One sync of a ReplicaSet: how many pods to create, which to delete, and its status. Pure.
 * Source: pkg/controller/replicaset/{replica_set,replica_set_utils}.go.
 *
 * Which pods of a ReplicaSet are deleted first when it has too many. Source: ActivePodsWithRanks.Less in
 * pkg/controller/controller_utils.go.
 *
 * ReplicaSets and ReplicationControllers: one controller, as upstream. A ReplicationController selects by a map of
 * labels. Source: pkg/controller/replication/conversion.go.
 */
import { defined } from '../../../shared/defined.ts';
import type { KubeObject, KubeReplicationController } from '../../../shared/kinds/types.ts';
import { textHash } from '../../../shared/text.ts';
import { availableAfterMs, isActive, isAvailable, isHeld, type OwnedPod } from '../owned-pods.rule.ts';
import { failureConditions, isSameConditions, type SyncFailure } from '../replica-failure.rule.ts';
import type { KubeReplicaSet, WorkloadStatus } from '../workload-types.ts';

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

export interface OrderContext {
  /** Active pods of all ReplicaSets of the same controller. */
  readonly relatedPods: readonly OwnedPod[];
  readonly nowMs: number;
}

const PHASE_ORDER = { Pending: 0, Unknown: 1, Running: 2, Succeeded: 2, Failed: 2 } as const;

/** The first `count` pods in the order of deletion. */
export function firstToDelete(pods: readonly OwnedPod[], count: number, context: OrderContext): readonly OwnedPod[] {
  if (count >= pods.length) return pods;
  const relatedOn = new Map<string, number>();
  for (const { nodeName } of context.relatedPods) relatedOn.set(nodeName, (relatedOn.get(nodeName) ?? 0) + 1);
  return pods.toSorted((left, right) => compare(left, right, relatedOn, context.nowMs)).slice(0, count);
}

/**
 * The chosen pods by the shard of their change log (store/layout.ts). A transaction of several pods then raises few
 * heads. Pods of one shard keep their order. Upstream deletes the chosen pods concurrently, without an order
 * (manageReplicas in pkg/controller/replicaset/replica_set.go).
 */
export const byLogShard = (
  chosen: readonly OwnedPod[],
  { namespace, logShards }: { readonly namespace: string; readonly logShards: number },
): readonly OwnedPod[] => {
  const shard = ({ name }: OwnedPod): number => textHash(`${namespace}/${name}`) % logShards;
  return chosen.toSorted((left, right) => shard(left) - shard(right));
};

/** Negative: `left` is deleted first. */
function compare(left: OwnedPod, right: OwnedPod, relatedOn: ReadonlyMap<string, number>, nowMs: number): number {
  const relatedPods = (pod: OwnedPod): number => relatedOn.get(pod.nodeName) ?? 0;
  return (
    Number(left.nodeName !== '') - Number(right.nodeName !== '') ||
    PHASE_ORDER[left.phase] - PHASE_ORDER[right.phase] ||
    Number(left.ready) - Number(right.ready) ||
    left.deletionCost - right.deletionCost ||
    relatedPods(right) - relatedPods(left) ||
    (left.ready && right.ready ? compareAges(left, right, 'readyChangedAtMs', nowMs) : 0) ||
    right.restartsMax - left.restartsMax ||
    compareAges(left, right, 'createdAtMs', nowMs)
  );
}

/**
 * The younger one first, by the logarithm of its age: exact times would always choose the pod of the latest deployment.
 * Equal times do not decide. In one bucket the lower uid decides.
 */
function compareAges(
  left: OwnedPod,
  right: OwnedPod,
  field: 'readyChangedAtMs' | 'createdAtMs',
  nowMs: number,
): number {
  const [leftMs, rightMs] = [left[field], right[field]];
  if (leftMs === rightMs) return 0;
  const buckets = ageBucket(leftMs, nowMs) - ageBucket(rightMs, nowMs);
  return buckets !== 0 ? buckets : left.uid < right.uid ? -1 : 1;
}

/** ⌊log2(age in nanoseconds)⌋. A missing time counts as the latest. */
function ageBucket(atMs: number | undefined, nowMs: number): number {
  if (atMs === undefined) return -1;
  const ageNanoseconds = (nowMs - atMs) * 1_000_000;
  return ageNanoseconds <= 0 ? -1 : Math.floor(Math.log2(ageNanoseconds));
}

export interface SetKind {
  readonly kind: 'ReplicaSet' | 'ReplicationController';
  /** Source of its events. */
  readonly component: string;
  /** The stored object as a ReplicaSet. */
  readonly asReplicaSet: (stored: KubeObject) => KubeReplicaSet;
}

const REPLICA_SETS: SetKind = {
  kind: 'ReplicaSet',
  component: 'replicaset-controller',
  asReplicaSet: (stored) => stored as KubeReplicaSet,
};

const REPLICATION_CONTROLLERS: SetKind = {
  kind: 'ReplicationController',
  component: 'replication-controller',
  asReplicaSet(stored) {
    const { spec = {}, ...rest } = stored as KubeReplicationController;
    return { ...rest, spec: { ...spec, selector: { matchLabels: spec.selector ?? {} } } } as KubeReplicaSet;
  },
};

export const setKindOf = (resource: string): SetKind =>
  resource === 'replicationcontrollers' ? REPLICATION_CONTROLLERS : REPLICA_SETS;
