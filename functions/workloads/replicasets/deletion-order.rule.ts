/**
 * Which pods of a ReplicaSet are deleted first when it has too many. Source: ActivePodsWithRanks.Less in
 * pkg/controller/controller_utils.go.
 */
import { textHash } from '../../../shared/text.ts';
import type { OwnedPod } from '../pods/owned-pod.rule.ts';

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
