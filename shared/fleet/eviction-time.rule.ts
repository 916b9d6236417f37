/**
 * When a node's NoExecute taints evict a pod.
 *
 *     due = minimum over the taints of ( later of (taint's time, pod's binding) + seconds of the toleration used )
 *
 * The due time is computed from the current state only. So a change of a toleration or a taint moves the eviction (D6),
 * and a restart loses nothing (D5).
 *
 * Requirements on writers of taints:
 * - Every NoExecute taint carries `timeAdded`, in server time. The API writes it in the write that adds the taint
 *   (`withTaintTimes`), whatever the client sent. A taint rewritten with the same key and value keeps its time.
 * - A taint without a time is data of an older version. It counts as added now, so it evicts no pod before it is
 *   stamped.
 * - Our own swap between not-ready and unreachable keeps the time (`swapNoExecute` in node-taints.ts): for the pod both
 *   are one outage. So `timeAdded` of these two is the start of the pods' toleration times.
 * - `timeAdded` has whole seconds on the wire. Writers round **up**: no pod is evicted early.
 *
 * Source: pkg/controller/tainteviction/taint_eviction.go, without its memory of the first schedule
 * (docs/deviations.md).
 *
 * When a terminating pod that must not run twice has stopped on its silent machine, and is removed.
 *
 *     b             last heartbeat or status that the cluster received, or the end of an outage of the controller
 *     b + stop      the machine has stopped the pod, its margin included (offlineStoppedAtMs)
 *
 * The machine must still be silent then: its Node has the taint `unreachable`, and its digest says Unknown. A heartbeat
 * moves the time. A Node that recovers cancels it: the machine then finds the deletion in its list.
 *
 * An outage of the controller may be a step of its clock forward. What it received before seems older than it is, so
 * the whole time counts from the end of the outage (D9). A shorter step looks like late ticks, and is added.
 */
import type { ConditionStatus, Toleration } from '../kubernetes/kubernetes.ts';
import { rfc3339 } from '../kubernetes/rfc3339.ts';
import { type TickGapPolicy, tickGapMaxMs } from '../ticks/tick.ts';
import { lastSignOfLifeMs, lastSpokeAtMs, type NodeHealth } from './nodes/health.ts';
import {
  type NoExecuteTaint,
  TAINT_NOT_READY,
  TAINT_UNREACHABLE,
  tolerationFor,
  tolerationTime,
} from './nodes/taint.ts';

/** Whether a taint is one of the two that the controllers add to silent and not-ready nodes. */
export const isLifecycleTaintKey = (key: string): boolean => key === TAINT_NOT_READY || key === TAINT_UNREACHABLE;

export type EvictionVerdict =
  /** No NoExecute taint, or not bound: nothing to tolerate. */
  | { readonly kind: 'none'; readonly reason: string }
  /** Every taint is tolerated without a time limit. */
  | { readonly kind: 'never'; readonly reason: string }
  /** To be deleted at this time; a time in the past means now. `taintKey` names the deciding taint. */
  | { readonly kind: 'due'; readonly atMs: number; readonly taintKey: string; readonly reason: string };

export interface EvictionQuestion {
  readonly taints: readonly NoExecuteTaint[];
  readonly tolerations: readonly Toleration[];
  /** Server time at which the pod was bound to the node; absent when it is not bound. */
  readonly boundAtMs: number | undefined;
  /** Server time. A taint without a time counts from here. */
  readonly nowMs: number;
  /**
   * Evictions for our own two taints wait until this time, the end of every node's new grace period after an outage of
   * the controller (D9), or in total disruption. Absent without either. Other taints are not delayed.
   */
  readonly lifecycleNotBeforeMs?: number | undefined;
  /** The delay is for that reason. */
  readonly totalDisruption?: boolean | undefined;
}

/** The verdict over one pod on one node. The reason names the taint and toleration that decided. */
export function evictionVerdict(question: EvictionQuestion): EvictionVerdict {
  const { taints, tolerations, boundAtMs, nowMs, lifecycleNotBeforeMs, totalDisruption = false } = question;
  const delay = totalDisruption ? 'total disruption, which removes it' : 'the grace period after a controller outage';
  if (boundAtMs === undefined) return { kind: 'none', reason: 'pod is not bound' };
  if (taints.length === 0) return { kind: 'none', reason: 'node has no NoExecute taint' };

  let earliest: Extract<EvictionVerdict, { kind: 'due' }> | undefined;
  for (const taint of taints) {
    const toleration = tolerationFor(tolerations, { key: taint.key, value: taint.value, effect: 'NoExecute' });
    const time = tolerationTime(toleration);
    if (time.kind === 'forever') continue;
    // Zero seconds means now, even when the taint's time was rounded up into the future.
    const clockStartMs = time.seconds === 0 ? boundAtMs : Math.max(taint.addedAtMs ?? nowMs, boundAtMs);
    const plainMs = clockStartMs + time.seconds * 1_000;
    const waits = lifecycleNotBeforeMs !== undefined && isLifecycleTaintKey(taint.key);
    const atMs = waits ? Math.max(plainMs, lifecycleNotBeforeMs) : plainMs;
    if (earliest !== undefined && earliest.atMs <= atMs) continue;
    const how = toleration === undefined ? 'not tolerated' : `tolerated for ${time.seconds} s`;
    const grace = atMs > plainMs ? `, delayed by ${delay}` : '';
    earliest = { kind: 'due', atMs, taintKey: taint.key, reason: `${taint.key} is ${how}${grace}` };
  }
  return earliest ?? { kind: 'never', reason: 'every NoExecute taint is tolerated for ever' };
}

/** The change of a timer, from the verdict and the timer's current due time (absent: no timer). */
export type TimerChange =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'schedule'; readonly atMs: number }
  | { readonly kind: 'move'; readonly fromMs: number; readonly atMs: number }
  | { readonly kind: 'keep'; readonly atMs: number }
  | { readonly kind: 'cancel'; readonly fromMs: number }
  | { readonly kind: 'fire' };

/** Due means from that millisecond on (`>=`). */
export function timerChange(verdict: EvictionVerdict, timerAtMs: number | undefined, nowMs: number): TimerChange {
  if (verdict.kind !== 'due') {
    return timerAtMs === undefined ? { kind: 'nothing' } : { kind: 'cancel', fromMs: timerAtMs };
  }
  if (verdict.atMs <= nowMs) return { kind: 'fire' };
  if (timerAtMs === undefined) return { kind: 'schedule', atMs: verdict.atMs };
  if (timerAtMs === verdict.atMs) return { kind: 'keep', atMs: verdict.atMs };
  return { kind: 'move', fromMs: timerAtMs, atMs: verdict.atMs };
}

/** The signs of life in a node's digest. */
export type NodeSigns = Pick<NodeHealth, 'ready' | 'createdAtMs' | 'renewedAtMs' | 'statusAtMs'>;

/** The part of the margin (offline-stop.ts) that is for a step of the controller's clock. Milliseconds. */
const STEP_IN_MARGIN_MS = 30_000;

/** The longest step of the controller's clock that is no outage, as far as the margin is too short. Milliseconds. */
export const unnoticedStepMs = (policy: TickGapPolicy): number => Math.max(0, tickGapMaxMs(policy) - STEP_IN_MARGIN_MS);

/** Whether a node with these NoExecute taints and this Ready condition is silent. */
export const isSilentNode = (taints: readonly NoExecuteTaint[], ready: ConditionStatus | undefined): boolean =>
  ready === 'Unknown' && taints.some(({ key }) => key === TAINT_UNREACHABLE);

export function removalVerdict(of: {
  readonly offlineStopMs: number;
  readonly taints: readonly NoExecuteTaint[];
  readonly signs: NodeSigns | undefined;
  readonly freshSinceMs: number;
}): EvictionVerdict {
  const { offlineStopMs, taints, signs, freshSinceMs } = of;
  if (signs === undefined || !isSilentNode(taints, signs.ready)) {
    return { kind: 'none', reason: 'pod is already terminating, and the node is not silent' };
  }
  const fromMs = lastSignOfLifeMs(signs, freshSinceMs);
  const spokeAtMs = lastSpokeAtMs(signs);
  const counted = fromMs > spokeAtMs ? ` (counted from ${rfc3339(fromMs)}, after a controller outage)` : '';
  const silence = `no heartbeat or status since ${rfc3339(spokeAtMs)}${counted}`;
  const reason = `${silence}, and the machine has stopped the pod after ${offlineStopMs / 1_000} s`;
  return { kind: 'due', atMs: fromMs + offlineStopMs, taintKey: TAINT_UNREACHABLE, reason };
}
