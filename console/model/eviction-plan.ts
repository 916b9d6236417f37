/**
 * When the pods of a zone are evicted: by the taints that its nodes have, and for nodes that wait, by the limiter. The
 * time of a pod is that of the rule which the controllers run (eviction-time.rule.ts).
 */
import { evictionVerdict } from '../../shared/fleet/eviction-time.rule.ts';
import { tokenIntervalMs } from '../../shared/fleet/limiter.ts';
import { type NoExecuteTaint, TAINT_NOT_READY, TAINT_UNREACHABLE } from '../../shared/fleet/nodes/taint.ts';
import type { Toleration } from '../../shared/kubernetes/kubernetes.ts';
import type { NodeCell } from './node-cell.ts';

/** A pod of a node, as far as its eviction needs it. */
export interface EvictablePod {
  readonly tolerations: readonly Toleration[];
  readonly boundAtMs: number;
  readonly isTerminating: boolean;
}

export interface EvictionPlan {
  /** Pods that will be evicted. */
  readonly pods: number;
  /** Epoch milliseconds; undefined without such a pod. */
  readonly firstMs: number | undefined;
  readonly lastMs: number | undefined;
  /** Pods that tolerate their node for ever, such as those of a DaemonSet. */
  readonly staying: number;
  /** Pods that are being deleted. */
  readonly leaving: number;
  /** Nodes without their NoExecute taint, and when the limiter grants the next one. */
  readonly waiting: number;
  readonly nextTaintMs: number | undefined;
}

export interface PlanLimits {
  /** Taints per second; 0: never. */
  readonly ratePerSecond: number;
  readonly nextTokenAtMs: number | undefined;
  /** No eviction for the taints of the controllers before this time, after an outage of the controller. */
  readonly notBeforeMs: number | undefined;
  readonly nowMs: number;
}

/** `nodes`: those of one zone that are not Ready. `podsOf`: undefined while the pods of a node are not known. */
export function evictionPlanOf(
  nodes: readonly NodeCell[],
  podsOf: (node: string) => readonly EvictablePod[] | undefined,
  { ratePerSecond, nextTokenAtMs, notBeforeMs, nowMs }: PlanLimits,
): EvictionPlan {
  const waitingNodes = nodes
    .filter(({ isEvicting }) => !isEvicting)
    .sort((one, other) => (one.readySinceMs ?? 0) - (other.readySinceMs ?? 0));
  const firstTokenMs = Math.max(nowMs, nextTokenAtMs ?? nowMs);
  const taintsOf = (node: NodeCell): readonly NoExecuteTaint[] => {
    const turn = waitingNodes.indexOf(node);
    if (turn < 0) return node.noExecute;
    if (ratePerSecond <= 0) return [];
    const key = node.state === 'Unknown' ? TAINT_UNREACHABLE : TAINT_NOT_READY;
    return [{ key, value: '', addedAtMs: firstTokenMs + turn * tokenIntervalMs(ratePerSecond) }];
  };
  const dueMs: number[] = [];
  let staying = 0;
  let leaving = 0;
  for (const node of nodes) {
    const taints = taintsOf(node);
    for (const { tolerations, boundAtMs, isTerminating } of podsOf(node.name) ?? []) {
      const verdict = evictionVerdict({ taints, tolerations, boundAtMs, nowMs, lifecycleNotBeforeMs: notBeforeMs });
      if (isTerminating) leaving += 1;
      else if (verdict.kind === 'due') dueMs.push(verdict.atMs);
      else if (verdict.kind === 'never') staying += 1;
    }
  }
  return {
    pods: dueMs.length,
    firstMs: dueMs.length === 0 ? undefined : Math.min(...dueMs),
    lastMs: dueMs.length === 0 ? undefined : Math.max(...dueMs),
    staying,
    leaving,
    waiting: waitingNodes.length,
    nextTaintMs: waitingNodes.length === 0 || ratePerSecond <= 0 ? undefined : firstTokenMs,
  };
}
