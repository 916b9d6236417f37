/**
 * The taints that a node has because of its conditions.
 *
 * NoSchedule taints are added and removed immediately (doNoScheduleTaintingPass). A NoExecute taint evicts pods, so the
 * zone's limiter limits the rate at which it is added. Its removal, and the swap of one NoExecute taint for the other,
 * are immediate (processTaintBaseEviction).
 * Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go.
 */
import type { ConditionStatus, NodeCondition, Taint } from '../../kubernetes/kubernetes.ts';
import { parseRfc3339, rfc3339RoundedUp } from '../../kubernetes/rfc3339.ts';
import { conditionOf, REASON_NEVER_UPDATED, readyStatusOf } from './conditions.ts';
import type { NodeHealth } from './health.ts';
import {
  addTaint,
  findTaint,
  hasTaint,
  removeTaints,
  sameTaint,
  TAINT_DISK_PRESSURE,
  TAINT_MEMORY_PRESSURE,
  TAINT_NETWORK_UNAVAILABLE,
  TAINT_NOT_READY,
  TAINT_PID_PRESSURE,
  TAINT_UNREACHABLE,
  TAINT_UNSCHEDULABLE,
  type TaintIdentity,
  type TaintList,
} from './taint.ts';

/** The NoSchedule taints that these rules add and remove. Other NoSchedule taints are never changed. */
const OWN_NO_SCHEDULE = [
  TAINT_NOT_READY,
  TAINT_UNREACHABLE,
  TAINT_NETWORK_UNAVAILABLE,
  TAINT_MEMORY_PRESSURE,
  TAINT_DISK_PRESSURE,
  TAINT_PID_PRESSURE,
  TAINT_UNSCHEDULABLE,
] as const;

/** Condition type, and the taint while its status is True. */
const TAINT_OF_TRUE_CONDITION = [
  ['MemoryPressure', TAINT_MEMORY_PRESSURE],
  ['DiskPressure', TAINT_DISK_PRESSURE],
  ['NetworkUnavailable', TAINT_NETWORK_UNAVAILABLE],
  ['PIDPressure', TAINT_PID_PRESSURE],
] as const;

interface NodeSituation {
  readonly taints: TaintList;
  readonly conditions: readonly NodeCondition[] | undefined;
  readonly unschedulable: boolean;
}

/**
 * True when the node itself has never posted a Ready condition: there is none, or only the one that node-monitor wrote.
 */
const neverPostedReady = (conditions: readonly NodeCondition[] | undefined): boolean => {
  const ready = conditionOf(conditions, 'Ready');
  return ready === undefined || (ready.status === 'Unknown' && ready.reason === REASON_NEVER_UPDATED);
};

/** Keys of OWN_NO_SCHEDULE that the node must have. */
export function wantedNoScheduleKeys(situation: NodeSituation): string[] {
  const wanted: string[] = [];
  const ready = readyStatusOf(situation.conditions);
  // Every Node is created with not-ready:NoSchedule. A node that never posted Ready keeps it until Ready is True (D13).
  // Upstream removes it, because no condition requires it, so pods may be scheduled before the node is ready.
  const fromCreation =
    neverPostedReady(situation.conditions) &&
    hasTaint(situation.taints, { key: TAINT_NOT_READY, effect: 'NoSchedule' });
  if (ready === 'False' || fromCreation) wanted.push(TAINT_NOT_READY);
  if (ready === 'Unknown') wanted.push(TAINT_UNREACHABLE);
  for (const [type, key] of TAINT_OF_TRUE_CONDITION) {
    if (conditionOf(situation.conditions, type)?.status === 'True') wanted.push(key);
  }
  if (situation.unschedulable) wanted.push(TAINT_UNSCHEDULABLE);
  return wanted;
}

/** All taints of the node, with the required NoSchedule taints. Undefined when nothing changes. */
export function reconcileNoSchedule(situation: NodeSituation): Taint[] | undefined {
  const wanted = wantedNoScheduleKeys(situation);
  const missing = wanted.filter((key) => !hasTaint(situation.taints, { key, effect: 'NoSchedule' }));
  const surplus = OWN_NO_SCHEDULE.filter((key) => !wanted.includes(key)).map(
    (key): TaintIdentity => ({ key, effect: 'NoSchedule' }),
  );
  const kept = removeTaints(situation.taints, surplus);
  if (missing.length === 0 && kept.length === situation.taints.length) return undefined;
  return [...kept, ...missing.map((key): Taint => ({ key, effect: 'NoSchedule' }))];
}

/** Names of our two NoExecute taints in these rules. */
export type NoExecuteKind = 'notReady' | 'unreachable';

export const NO_EXECUTE: Readonly<Record<NoExecuteKind, TaintIdentity>> = Object.freeze({
  notReady: Object.freeze({ key: TAINT_NOT_READY, effect: 'NoExecute' }),
  unreachable: Object.freeze({ key: TAINT_UNREACHABLE, effect: 'NoExecute' }),
});

/** Which of our NoExecute taints are in a list. */
export const noExecuteOf = (taints: TaintList): NodeHealth['noExecute'] => ({
  notReady: hasTaint(taints, NO_EXECUTE.notReady),
  unreachable: hasTaint(taints, NO_EXECUTE.unreachable),
});

/** The NoExecute taint for a Ready status. Undefined for True and for a node without Ready condition. */
export function wantedNoExecute(ready: ConditionStatus | undefined): NoExecuteKind | undefined {
  if (ready === 'False') return 'notReady';
  if (ready === 'Unknown') return 'unreachable';
  return undefined;
}

/**
 * The required change of a node's NoExecute taints.
 * - none: no change.
 * - lift: Ready is True, so these taints are removed immediately.
 * - swap: the node has the other taint. It is replaced immediately, without the limiter. Also repairs a node with both.
 * - enqueue: the node has neither. It waits in the queue of its zone until the limiter grants a token.
 */
export type NoExecuteDecision =
  | { readonly kind: 'none' }
  | { readonly kind: 'lift'; readonly taints: readonly NoExecuteKind[] }
  | { readonly kind: 'swap'; readonly from: NoExecuteKind; readonly to: NoExecuteKind }
  | { readonly kind: 'enqueue'; readonly taint: NoExecuteKind };

export const carriedNoExecute = (noExecute: NodeHealth['noExecute']): NoExecuteKind[] => {
  const carried: NoExecuteKind[] = [];
  if (noExecute.unreachable) carried.push('unreachable');
  if (noExecute.notReady) carried.push('notReady');
  return carried;
};

const NOTHING_TO_DO: NoExecuteDecision = Object.freeze({ kind: 'none' });

export function decideNoExecute(
  ready: ConditionStatus | undefined,
  noExecute: NodeHealth['noExecute'],
): NoExecuteDecision {
  if (ready === 'True') {
    return noExecute.notReady || noExecute.unreachable
      ? { kind: 'lift', taints: carriedNoExecute(noExecute) }
      : NOTHING_TO_DO;
  }
  const to = wantedNoExecute(ready);
  if (to === undefined) return NOTHING_TO_DO;
  const from = to === 'notReady' ? 'unreachable' : 'notReady';
  if (noExecute[from]) return { kind: 'swap', from, to };
  return noExecute[to] ? NOTHING_TO_DO : { kind: 'enqueue', taint: to };
}

/**
 * Adds a NoExecute taint of ours with the time nowMs, rounded up to the second: no pod is then evicted early. Returns
 * undefined if the node has the taint already; its time does not change.
 */
export const addNoExecute = (taints: TaintList, kind: NoExecuteKind, nowMs: number): Taint[] | undefined =>
  hasTaint(taints, NO_EXECUTE[kind])
    ? undefined
    : addTaint(taints, { ...NO_EXECUTE[kind], timeAdded: rfc3339RoundedUp(nowMs) });

/** Removes both NoExecute taints of ours; undefined if there is none. */
export function liftNoExecute(taints: TaintList): Taint[] | undefined {
  const kept = removeTaints(taints, [NO_EXECUTE.unreachable, NO_EXECUTE.notReady]);
  return kept.length === taints.length ? undefined : kept;
}

/**
 * Replaces our other NoExecute taint by `to`. Returns undefined if the other one is absent: there is nothing to
 * replace, and adding a taint needs the limiter. The new taint keeps the time of the replaced one, or the earlier time
 * if the node has both, so the eviction times of the pods do not move (D6).
 */
export function swapNoExecute(taints: TaintList, to: NoExecuteKind, nowMs: number): Taint[] | undefined {
  const from = to === 'notReady' ? NO_EXECUTE.unreachable : NO_EXECUTE.notReady;
  const replaced = findTaint(taints, from);
  if (replaced === undefined) return undefined;
  const earliest = [replaced, findTaint(taints, NO_EXECUTE[to])]
    .map((taint) => taint?.timeAdded)
    .filter((text) => text !== undefined)
    .map((text) => ({ text, epochMs: parseRfc3339(text) ?? Infinity }))
    .sort((a, b) => a.epochMs - b.epochMs)[0];
  const timeAdded = earliest?.text ?? rfc3339RoundedUp(nowMs);
  const others = removeTaints(taints, [NO_EXECUTE[to]]);
  return others.map((taint) => (sameTaint(taint, from) ? { ...NO_EXECUTE[to], timeAdded } : taint));
}
