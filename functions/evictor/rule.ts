/**
 * One pass over a zone's eviction queue: which nodes leave it, and which one is tainted when the limiter grants a
 * token. The decision uses the node's current state, not its state when it was enqueued. A token is requested only for
 * an item that is due and would be tainted (D4). A pass taints one node at most: the bucket holds one token.
 *
 * Source: doNoExecuteTaintingPass in pkg/controller/nodelifecycle/node_lifecycle_controller.go.
 *
 * Queue order: time of enqueueing, then name. It never depends on the order of a read.
 */
import type { QueuedNode, QueueItem } from '../../shared/fleet/fleet-records.ts';
import type { GateReason, GateVerdict } from '../../shared/fleet/gate.ts';
import { type Limiter, type LimiterUpdate, takeTokenUpdate } from '../../shared/fleet/limiter.ts';
import { healthVerdict, isReturning, isSilencePlanned, type NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { decideNoExecute, type NoExecuteKind } from '../../shared/fleet/nodes/node-taints.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { ConditionStatus } from '../../shared/kubernetes/kubernetes.ts';

interface OfItem {
  readonly nodeName: string;
  readonly uid: string;
  readonly zone: string;
  readonly addedAtMs: number;
}

export type EvictionDecision =
  /** Leaves the queue untainted, without a token. */
  | ({
      readonly kind: 'drop';
      readonly reason: 'nodeGone' | 'ready' | 'noReadyCondition' | 'returning' | 'tainted' | 'plannedSilence';
    } & OfItem)
  /**
   * The node carries the opposite taint: swapped at once, without a token, not counted as an eviction. Leaves the
   * queue.
   */
  | ({
      readonly kind: 'swap';
      readonly from: NoExecuteKind;
      readonly to: NoExecuteKind;
      readonly ready: ConditionStatus;
    } & OfItem)
  /** Request a token by this update. If granted: add the taint, remove the queue entry, count one eviction. */
  | ({
      readonly kind: 'taint';
      readonly taint: NoExecuteKind;
      readonly ready: ConditionStatus;
      readonly waitedSeconds: number;
      readonly ratePerSecond: number;
      readonly token: LimiterUpdate;
    } & OfItem);

/** Why the head of the queue was not tainted. */
export type EvictionHold =
  | { readonly kind: 'gate'; readonly reasons: readonly GateReason[] }
  | { readonly kind: 'totalDisruption' }
  | { readonly kind: 'never' }
  | { readonly kind: 'rate'; readonly untilMs: number };

export interface EvictionOutcome {
  /** In order. A taint comes last. */
  readonly decisions: readonly EvictionDecision[];
  /** Present when a node waits and none is tainted. */
  readonly hold: EvictionHold | undefined;
}

/** Why no node of the zone can be tainted now; undefined when one can. */
export function evictionHold(
  limiter: Limiter,
  at: { readonly nowMs: number; readonly gate: GateVerdict; readonly totalDisruption: boolean },
): EvictionHold | undefined {
  if (at.gate.kind === 'holding') return { kind: 'gate', reasons: at.gate.reasons };
  if (at.totalDisruption) return { kind: 'totalDisruption' };
  if (!(limiter.ratePerSecond > 0)) return { kind: 'never' };
  if (limiter.tatMs !== undefined && limiter.tatMs > at.nowMs) return { kind: 'rate', untilMs: limiter.tatMs };
  return undefined;
}

/**
 * `items`: the head of one zone's queue. `nodes`: their digests; a node without a digest no longer exists. `limiter`:
 * as last read; whether a token is granted is decided by the conditional update.
 */
export function decideEvictions(
  zone: {
    readonly items: readonly QueuedNode[];
    readonly nodes: ReadonlyMap<string, NodeHealth>;
    readonly limiter: Limiter;
  },
  at: {
    readonly nowMs: number;
    readonly gate: GateVerdict;
    readonly totalDisruption: boolean;
    readonly policy: Policy;
    readonly freshSinceMs: number;
  },
): EvictionOutcome {
  const { nowMs } = at;
  const decisions: EvictionDecision[] = [];
  for (const item of [...zone.items].sort(compareQueueItems)) {
    const of: OfItem = { nodeName: item.nodeName, uid: item.uid, zone: item.zone, addedAtMs: item.addedAtMs };
    const health = zone.nodes.get(item.nodeName);
    if (health === undefined || health.uid !== item.uid) {
      decisions.push({ kind: 'drop', ...of, reason: 'nodeGone' });
      continue;
    }
    const { ready } = health;
    if (ready === 'True' || ready === undefined) {
      decisions.push({ kind: 'drop', ...of, reason: ready === 'True' ? 'ready' : 'noReadyCondition' });
      continue;
    }
    if (isSilencePlanned(health, nowMs)) {
      decisions.push({ kind: 'drop', ...of, reason: 'plannedSilence' });
      continue;
    }
    const wanted = decideNoExecute(ready, health.noExecute);
    if (wanted.kind === 'swap') {
      // In total disruption node-monitor removes these taints; a swap would add one again.
      if (at.totalDisruption) return { decisions, hold: { kind: 'totalDisruption' } };
      decisions.push({ kind: 'swap', ...of, from: wanted.from, to: wanted.to, ready });
      continue;
    }
    if (wanted.kind !== 'enqueue') {
      decisions.push({ kind: 'drop', ...of, reason: 'tainted' });
      continue;
    }
    if (isReturning(health, healthVerdict(health, at))) {
      decisions.push({ kind: 'drop', ...of, reason: 'returning' });
      continue;
    }
    const hold = evictionHold(zone.limiter, at);
    if (hold !== undefined) return { decisions, hold };
    const { ratePerSecond } = zone.limiter;
    const token = takeTokenUpdate({ nowMs, ratePerSecond });
    if (token === undefined) return { decisions, hold: { kind: 'never' } };
    decisions.push({
      kind: 'taint',
      ...of,
      taint: wanted.taint,
      ready,
      waitedSeconds: Math.max(0, nowMs - item.addedAtMs) / 1_000,
      ratePerSecond,
      token,
    });
    return { decisions, hold: undefined };
  }
  return { decisions, hold: undefined };
}

export function compareQueueItems(a: QueueItem, b: QueueItem): number {
  if (a.addedAtMs !== b.addedAtMs) return a.addedAtMs - b.addedAtMs;
  if (a.nodeName === b.nodeName) return 0;
  return a.nodeName < b.nodeName ? -1 : 1;
}
