/**
 * Which taints a node's condition asks for.
 *
 * NoSchedule follows conditions at once and without a rate (doNoScheduleTaintingPass). NoExecute evicts pods, so adding
 * it is paced by the zone's limiter; changing it for its opposite and lifting it are not (processTaintBaseEviction).
 * Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go.
 */

import type { ConditionStatus, NodeCondition, Taint } from '../kubernetes.ts';
import { parseRfc3339, rfc3339RoundedUp } from '../rfc3339.ts';
import { conditionOf, REASON_NEVER_UPDATED, readyStatusOf } from './conditions.ts';
import type { NodeHealth } from './node-health.ts';
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

/** The seven NoSchedule taints that are ours to add and remove; all others belong to somebody else. */
const OWN_NO_SCHEDULE = [
  TAINT_NOT_READY,
  TAINT_UNREACHABLE,
  TAINT_NETWORK_UNAVAILABLE,
  TAINT_MEMORY_PRESSURE,
  TAINT_DISK_PRESSURE,
  TAINT_PID_PRESSURE,
  TAINT_UNSCHEDULABLE,
] as const;

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
 * Whether a node has yet to say anything about its readiness: no Ready condition, or only the one we wrote in its
 * stead.
 */
const neverPostedReady = (conditions: readonly NodeCondition[] | undefined): boolean => {
  const ready = conditionOf(conditions, 'Ready');
  return ready === undefined || (ready.status === 'Unknown' && ready.reason === REASON_NEVER_UPDATED);
};

/** Keys of the NoSchedule taints a node should carry of ours. */
export function wantedNoScheduleKeys(situation: NodeSituation): string[] {
  const wanted: string[] = [];
  const ready = readyStatusOf(situation.conditions);
  // Every Node is created with not-ready:NoSchedule. One that never had Ready keeps it until Ready is True (D13): what
  // upstream does, removing it because no condition asks for it, opens a node to pods before it has spoken.
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

/** The node's taints with our NoSchedule ones as they should be; undefined when they are so already. */
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

/** Our two NoExecute taints, by the word the rules use for them. */
export type NoExecuteKind = 'notReady' | 'unreachable';

export const NO_EXECUTE: Readonly<Record<NoExecuteKind, TaintIdentity>> = Object.freeze({
  notReady: Object.freeze({ key: TAINT_NOT_READY, effect: 'NoExecute' }),
  unreachable: Object.freeze({ key: TAINT_UNREACHABLE, effect: 'NoExecute' }),
});

/** Which of them a list carries, as kept in NodeHealth.noExecute. */
export const noExecuteOf = (taints: TaintList): NodeHealth['noExecute'] => ({
  notReady: hasTaint(taints, NO_EXECUTE.notReady),
  unreachable: hasTaint(taints, NO_EXECUTE.unreachable),
});

/** The NoExecute taint a Ready status asks for; undefined for True and for a node without Ready. */
export function wantedNoExecute(ready: ConditionStatus | undefined): NoExecuteKind | undefined {
  if (ready === 'False') return 'notReady';
  if (ready === 'Unknown') return 'unreachable';
  return undefined;
}

/**
 * What is to be done about a node's NoExecute taints.
 * - none: as it should be.
 * - lift: Ready is True; these go, at once.
 * - swap: it carries the opposite taint; changed at once, outside any rate. Also heals a node left with both.
 * - enqueue: it carries neither; it has to wait for its zone's limiter.
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
