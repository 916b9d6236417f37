/**
 * When a pod must leave a node because of the node's NoExecute taints.
 *
 *     due = minimum over the taints of ( later of (taint's time, pod's binding) + seconds of the toleration used )
 *
 * The due time is a function of the world as it stands: nothing is remembered between decisions, so shortening or
 * lengthening a toleration, adding or lifting a taint moves the eviction (D6), and a restart forgets nothing (D5).
 *
 * What writers of taints must do for that:
 * - Every NoExecute taint carries `timeAdded`, in server time. The API writes it in the write that adds the taint
 *   (`withTaintTimes`), whatever the client sent. A taint rewritten with the same key and value keeps its time.
 * - A taint without a time is data of an older version. It counts as added now, so it evicts nobody before it is stamped.
 * - Our own swap between not-ready and unreachable carries the time over (`swapNoExecute` in node-taints.ts): to the
 *   pod it is one silence, whatever we call it. So `timeAdded` of these two means "since when the pods' clock runs".
 * - `timeAdded` has whole seconds on the wire. Writers round **up**, so that no pod leaves before its time.
 *
 * Source: pkg/controller/tainteviction/taint_eviction.go, less its memory of the first schedule (docs/deviations.md).
 */
import type { Toleration } from '../../domain/kubernetes.ts';
import { TAINT_NOT_READY, TAINT_UNREACHABLE } from '../../domain/nodes/taint.ts';
import type { NoExecuteTaint } from '../../domain/nodes/taint-times.ts';
import { tolerationFor, tolerationTime } from '../../domain/nodes/toleration.ts';

/** Whether a taint is one of the two that the node monitor itself puts on silent and not-ready nodes. */
export const isLifecycleTaintKey = (key: string): boolean => key === TAINT_NOT_READY || key === TAINT_UNREACHABLE;

export type EvictionVerdict =
  /** No NoExecute taint, or not bound: nothing to tolerate. */
  | { readonly kind: 'none'; readonly reason: string }
  /** Every taint is tolerated for ever. */
  | { readonly kind: 'never'; readonly reason: string }
  /** To be deleted at this time; one in the past means now. `taintKey` decided it. */
  | { readonly kind: 'due'; readonly atMs: number; readonly taintKey: string; readonly reason: string };

export interface EvictionQuestion {
  readonly taints: readonly NoExecuteTaint[];
  readonly tolerations: readonly Toleration[];
  /** Server time at which the pod was bound to the node; absent when it is not bound. */
  readonly boundAtMs: number | undefined;
  /** Server time. A taint that is not stamped yet counts from here. */
  readonly nowMs: number;
  /**
   * Evictions for our own two taints wait until this time: the fresh grace that every node gets after an outage of ours
   * (D9). Absent when there was none. Taints of others are not ours to doubt.
   */
  readonly lifecycleNotBeforeMs?: number | undefined;
}

/** The verdict over one pod on one node. The reason names the taint and toleration that decided. */
export function evictionVerdict(question: EvictionQuestion): EvictionVerdict {
  const { taints, tolerations, boundAtMs, nowMs, lifecycleNotBeforeMs } = question;
  if (boundAtMs === undefined) return { kind: 'none', reason: 'pod is not bound' };
  if (taints.length === 0) return { kind: 'none', reason: 'node has no NoExecute taint' };

  let earliest: Extract<EvictionVerdict, { kind: 'due' }> | undefined;
  for (const taint of taints) {
    const toleration = tolerationFor(tolerations, { key: taint.key, value: taint.value, effect: 'NoExecute' });
    const time = tolerationTime(toleration);
    if (time.kind === 'forever') continue;
    // Zero seconds is "now", also when the taint's time was rounded up into the future.
    const clockStartMs = time.seconds === 0 ? boundAtMs : Math.max(taint.addedAtMs ?? nowMs, boundAtMs);
    const plainMs = clockStartMs + time.seconds * 1_000;
    const waits = lifecycleNotBeforeMs !== undefined && isLifecycleTaintKey(taint.key);
    const atMs = waits ? Math.max(plainMs, lifecycleNotBeforeMs) : plainMs;
    if (earliest !== undefined && earliest.atMs <= atMs) continue;
    const how = toleration === undefined ? 'not tolerated' : `tolerated for ${time.seconds} s`;
    const grace = atMs > plainMs ? ', held by the grace after an outage of ours' : '';
    earliest = { kind: 'due', atMs, taintKey: taint.key, reason: `${taint.key} is ${how}${grace}` };
  }
  return earliest ?? { kind: 'never', reason: 'every NoExecute taint is tolerated for ever' };
}

/** What becomes of a timer, given the verdict and the timer's present due time (absent: no timer). */
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
