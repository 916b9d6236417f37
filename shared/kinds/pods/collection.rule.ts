/**
 * Pods that no kubelet deletes: terminated pods beyond a threshold, terminating pods on out-of-service nodes, pods of
 * nodes that do not exist, and terminating pods that were never bound.
 *
 * Pods of a missing node are not deleted immediately. The node name first stays in quarantine. Then a live read must
 * confirm that the Node does not exist, because a list may have been read before the Node was created. The caller
 * stores the quarantine between ticks, reads the ripe names live, and passes on the results:
 *
 *     watchOrphans -> ripe names -> live reads -> settleOrphans -> missing names -> podRemovals -> steps
 *
 * Source: pkg/controller/podgc/gc_controller.go.
 */

import type { DisruptionCondition } from '../../fleet/eviction.rule.ts';
import { TAINT_OUT_OF_SERVICE } from '../../fleet/nodes/taint.ts';
import type { Policy } from '../../fleet/policy.ts';
import type { ConditionStatus, Taint } from '../../kubernetes/kubernetes.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import type { KubePod } from '../types.ts';
import { siteHubOf } from './site-permit.ts';
import type { ListedPod, PodGcList } from './work-list-store.ts';

export const ORPHAN_CONDITION: DisruptionCondition = Object.freeze({
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'DeletionByPodGC',
  message: 'PodGC: node no longer exists',
});

export interface CollectablePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** '' or absent: not bound. */
  readonly nodeName: string | undefined;
  /** status.phase; absent counts as terminated, as upstream does. */
  readonly phase: string | undefined;
  /** status.reason */
  readonly reason: string | undefined;
  readonly createdAtMs: number;
  readonly terminating: boolean;
  /** The hub of its site decides about it (site-permit.ts). Absent: the cluster does. */
  readonly isOfSite?: true;
}

export interface CollectableNode {
  readonly name: string;
  readonly ready: ConditionStatus | undefined;
  readonly taints: readonly Readonly<Taint>[];
}

/** Label `reason` of the metrics pod_gc_collector_force_delete_pods_total and …_errors_total. */
export type RemovalReason = 'terminated' | 'out-of-service' | 'orphaned' | 'unscheduled';

export type RemovalStep =
  /** status.phase becomes Failed; the condition, if any, is written with it. */
  | { readonly kind: 'markFailed'; readonly condition: DisruptionCondition | undefined }
  | { readonly kind: 'delete'; readonly gracePeriodSeconds: 0 };

export interface PodRemoval {
  readonly namespace: string;
  readonly name: string;
  readonly podUid: string;
  readonly reason: RemovalReason;
  /** In this order. A step that fails ends the removal; the next tick decides again. */
  readonly steps: readonly RemovalStep[];
}

function removal(pod: CollectablePod, reason: RemovalReason, condition?: DisruptionCondition): PodRemoval {
  const finished = pod.phase === 'Succeeded' || pod.phase === 'Failed';
  const markFailed: readonly RemovalStep[] = finished ? [] : [{ kind: 'markFailed', condition }];
  return {
    namespace: pod.namespace,
    name: pod.name,
    podUid: pod.uid,
    reason,
    steps: [...markFailed, { kind: 'delete', gracePeriodSeconds: 0 }],
  };
}

const isBound = (pod: Pick<CollectablePod, 'nodeName'>): boolean => pod.nodeName !== undefined && pod.nodeName !== '';

/** Terminated, or without a phase, which upstream counts as terminated. */
export const isTerminated = (pod: Pick<CollectablePod, 'phase'>): boolean =>
  pod.phase !== 'Pending' && pod.phase !== 'Running' && pod.phase !== 'Unknown';

const compare = <T extends number | string>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);

/** Terminated pods above the threshold: evicted ones first, then the oldest, then by name. 0 keeps all. */
export function terminatedRemovals(pods: readonly CollectablePod[], threshold: number): PodRemoval[] {
  if (threshold <= 0) return [];
  const terminated = pods.filter(isTerminated);
  const surplus = terminated.length - threshold;
  if (surplus <= 0) return [];
  const rank = (pod: CollectablePod): number => (pod.reason === 'Evicted' ? 0 : 1);
  return terminated
    .toSorted(
      (a, b) =>
        rank(a) - rank(b) ||
        a.createdAtMs - b.createdAtMs ||
        compare(a.name, b.name) ||
        compare(a.namespace, b.namespace),
    )
    .slice(0, surplus)
    .map((pod) => removal(pod, 'terminated'));
}

/** Matched by its key alone, whatever its value and effect. */
export const isOutOfService = (taints: readonly Readonly<Taint>[]): boolean =>
  taints.some((taint) => taint.key === TAINT_OUT_OF_SERVICE);

/** Terminating pods on out-of-service nodes that are not Ready. Taint eviction handles the other pods there. */
export function outOfServiceRemovals(pods: readonly CollectablePod[], nodes: readonly CollectableNode[]): PodRemoval[] {
  const lost = new Set(
    nodes.filter((node) => node.ready !== 'True' && isOutOfService(node.taints)).map(({ name }) => name),
  );
  return pods
    .filter((pod) => pod.terminating && pod.isOfSite !== true && pod.nodeName !== undefined && lost.has(pod.nodeName))
    .map((pod) => removal(pod, 'out-of-service'));
}

/** Node name to the time at which it was first seen missing. */
export type OrphanQuarantine = ReadonlyMap<string, number>;

/**
 * Updates the quarantine from the lists. Names with a Node, or without a pod, leave it. `ripe`: names that have been
 * missing for the whole quarantine (from that millisecond on), to be confirmed by a live read.
 */
export function watchOrphans(
  world: {
    readonly pods: readonly Pick<CollectablePod, 'nodeName'>[];
    readonly nodeNames: ReadonlySet<string>;
    readonly quarantine: OrphanQuarantine;
  },
  nowMs: number,
  policy: Pick<Policy, 'orphanQuarantineSeconds'>,
): { readonly quarantine: OrphanQuarantine; readonly ripe: readonly string[] } {
  const quarantine = new Map<string, number>();
  for (const pod of world.pods) {
    if (!isBound(pod) || pod.nodeName === undefined || world.nodeNames.has(pod.nodeName)) continue;
    quarantine.set(pod.nodeName, world.quarantine.get(pod.nodeName) ?? nowMs);
  }
  const ripe = [...quarantine]
    .filter(([, sinceMs]) => nowMs - sinceMs >= policy.orphanQuarantineSeconds * 1_000)
    .map(([nodeName]) => nodeName)
    .toSorted();
  return { quarantine, ripe };
}

export type LiveRead = 'missing' | 'exists' | 'failed';

/** Applies the live reads of the ripe names. A name with a Node leaves the quarantine; a failed read restarts it. */
export function settleOrphans(
  quarantine: OrphanQuarantine,
  reads: ReadonlyMap<string, LiveRead>,
  nowMs: number,
): { readonly quarantine: OrphanQuarantine; readonly missing: ReadonlySet<string> } {
  const next = new Map(quarantine);
  const missing = new Set<string>();
  for (const [nodeName, read] of reads) {
    if (read === 'failed') {
      next.set(nodeName, nowMs);
      continue;
    }
    next.delete(nodeName);
    if (read === 'missing') missing.add(nodeName);
  }
  return { quarantine: next, missing };
}

/** All pods of the nodes known to be missing, finished ones too. */
export const orphanRemovals = (pods: readonly CollectablePod[], missing: ReadonlySet<string>): PodRemoval[] =>
  pods
    .filter((pod) => pod.isOfSite !== true && pod.nodeName !== undefined && missing.has(pod.nodeName))
    .map((pod) => removal(pod, 'orphaned', ORPHAN_CONDITION));

/** Terminating pods without a node: no kubelet will confirm their deletion. */
export const unscheduledRemovals = (pods: readonly CollectablePod[]): PodRemoval[] =>
  pods.filter((pod) => pod.terminating && !isBound(pod)).map((pod) => removal(pod, 'unscheduled'));

/** One tick: the four kinds in upstream's order. Each pod once, by the first kind that matches. */
export function podRemovals(
  world: {
    readonly pods: readonly CollectablePod[];
    readonly nodes: readonly CollectableNode[];
    readonly missing: ReadonlySet<string>;
  },
  policy: Pick<Policy, 'terminatedPodGcThreshold'>,
): PodRemoval[] {
  const claimed = new Map<string, PodRemoval>();
  for (const candidate of [
    ...terminatedRemovals(world.pods, policy.terminatedPodGcThreshold),
    ...outOfServiceRemovals(world.pods, world.nodes),
    ...orphanRemovals(world.pods, world.missing),
    ...unscheduledRemovals(world.pods),
  ]) {
    if (!claimed.has(candidate.podUid)) claimed.set(candidate.podUid, candidate);
  }
  return [...claimed.values()];
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** A live pod as this rule reads it. Its row in the work list: collectableRow. */
export const collectablePod = (pod: KubePod): CollectablePod => ({
  namespace: pod.metadata.namespace ?? '',
  name: pod.metadata.name ?? '',
  uid: pod.metadata.uid ?? '',
  nodeName: textOf(pod.spec?.nodeName),
  phase: textOf(pod.status?.phase),
  reason: textOf(pod.status?.reason),
  createdAtMs: parseTimeMs(pod.metadata.creationTimestamp) ?? 0,
  terminating: pod.metadata.deletionTimestamp !== undefined,
  ...(siteHubOf(pod) !== undefined && { isOfSite: true }),
});

const EVICTED = 'Evicted';

export const collectableRow = ({ evicted, ...pod }: ListedPod): CollectablePod => ({
  ...pod,
  reason: evicted ? EVICTED : undefined,
});

/** The row of a pod that belongs to the work list: terminating or terminated. */
export function listedPod(pod: KubePod | undefined): ListedPod | undefined {
  if (pod === undefined) return undefined;
  const { reason, isOfSite: _, ...collectable } = collectablePod(pod);
  if (!collectable.terminating && !isTerminated(collectable)) return undefined;
  return { ...collectable, evicted: reason === EVICTED };
}

/** Whether the list holds work. node-monitor reads it to wake pod-gc, and pod-gc before it claims a slot. */
export const hasWork = (
  list: PodGcList,
  { nowMs, policy }: { readonly nowMs: number; readonly policy: Pick<Policy, 'terminatedPodGcThreshold'> },
): boolean => list.volumes.length > 0 || hasPodsToCollect(list, policy) || isSweepDue(list, nowMs);

/**
 * Whether the list may lead to a removal. Terminated pods alone are only counted, until there are more of them than the
 * policy keeps.
 */
export function hasPodsToCollect(list: PodGcList, policy: Pick<Policy, 'terminatedPodGcThreshold'>): boolean {
  if (list.missing.size > 0 || list.pods.some(({ terminating }) => terminating)) return true;
  return podRemovals({ pods: list.pods.map(collectableRow), nodes: [], missing: new Set() }, policy).length > 0;
}

export const isSweepDue = ({ sweep }: PodGcList, nowMs: number): boolean =>
  sweep === undefined || sweep.dueAtMs <= nowMs;
