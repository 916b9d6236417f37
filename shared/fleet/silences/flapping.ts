/**
 * Flapping: a node that node-monitor marks Unknown again and again gets no new pods for a while.
 *
 *   flapThreshold marks within flapWindowSeconds ── begins
 *   flapStableSeconds without a mark ── ends
 *
 * Only marks of node-monitor count. Nothing that a machine writes is read. A mark does not count
 *   - when it is made in total disruption;
 *   - when total disruption begins, or the heartbeat path fails, at most one grace period later: the fault was probably
 *     ours. When all nodes fall silent at once, their marks are less than the longest grace period apart, because an
 *     interval and a period are at most half a grace period each.
 *
 * The marks of a node are 7 bytes in its row. They are written with the mark, so counting costs no write and no read:
 *
 *   1 bit    the node is flapping
 *   2 bits   number of gaps, less one
 *   29 bits  time of the last mark: seconds, modulo 17 years
 *   24 bits  gaps to the marks before it, newest first; all ones: no further mark
 *
 * With a threshold of 2 or 3 and a window up to 4,094 s, each time is exact to the second. Otherwise older times are
 * rounded down by at most 1/62 of the window.
 *
 * The next tick finds the threshold, and writes taint, condition, event and record in one commit, on the condition that
 * these bytes are unchanged. In the commit of the mark they would be six items instead of four in a mass failure. Taint
 * and condition are never read: machines and people may change both.
 */
import type { NodeCondition, Taint } from '../../kubernetes/kubernetes.ts';
import { rfc3339 } from '../../kubernetes/rfc3339.ts';
import { conditionOf } from '../nodes/conditions.ts';
import { overProfiles } from '../nodes/node-profile.ts';
import type { TaintList } from '../nodes/taint.ts';
import type { Policy } from '../policy.ts';

export const FLAPPING_TAINT_KEY = 'nodekeeper.dev/flapping';
export const FLAPPING_CONDITION = 'Flapping';

/** Four gaps of six bits. */
export const FLAP_THRESHOLD_MAX = 5;

const PACKED_BYTES = 7;
const TIME_MODULUS = 2 ** 29;
const GAP_BITS = 24;
/** A mark may have the time of a clock that is ahead of ours. Seconds. */
const CLOCK_SKEW_SECONDS = 3_600;

export interface FlapHistory {
  readonly isFlapping: boolean;
  /** Marks that counted when they were made, newest first; at most flapThreshold of them. Epoch seconds. */
  readonly marksSeconds: readonly number[];
}

const NO_HISTORY: FlapHistory = { isFlapping: false, marksSeconds: [] };

export interface FlapTime {
  readonly nowMs: number;
  readonly policy: Policy;
  /** When total disruption last began, and when the heartbeat path last failed. Epoch milliseconds. */
  readonly ownFaultsAtMs: readonly number[];
}

/** How `gaps` gaps are stored: bits of each, and seconds per unit. */
function gapForm(gaps: number, { flapWindowSeconds }: Policy): { readonly none: number; readonly unitSeconds: number } {
  const none = 2 ** (GAP_BITS / gaps) - 1;
  return { none, unitSeconds: Math.max(1, Math.ceil(flapWindowSeconds / (none - 1))) };
}

/**
 * The marks in a row. An earlier threshold is read from the bytes; after a change of the window, gaps have its unit.
 */
export function flapHistoryOf(packed: Uint8Array | undefined, nowMs: number, policy: Policy): FlapHistory {
  if (packed?.length !== PACKED_BYTES) return NO_HISTORY;
  const numberAt = (from: number, to: number): number => packed.subarray(from, to).reduce((sum, b) => sum * 256 + b, 0);
  const head = numberAt(0, 4);
  const latest = Math.floor(nowMs / 1_000) + CLOCK_SKEW_SECONDS;
  const age = (latest - head) % TIME_MODULUS;
  const marksSeconds = [latest - (age < 0 ? age + TIME_MODULUS : age)];
  const gaps = (Math.floor(head / TIME_MODULUS) % 4) + 1;
  const { none, unitSeconds } = gapForm(gaps, policy);
  let rest = numberAt(4, PACKED_BYTES);
  let unit = Math.floor(marksSeconds[0]! / unitSeconds);
  for (let at = 0; at < gaps; at += 1) {
    const weight = (none + 1) ** (gaps - 1 - at);
    const gap = Math.floor(rest / weight);
    if (gap === none) break;
    rest -= gap * weight;
    unit -= gap;
    marksSeconds.push(unit * unitSeconds);
  }
  return { isFlapping: head >= 2 ** 31, marksSeconds };
}

/** The bytes of these marks; undefined without a mark. Marks that the threshold does not need are left out. */
export function packedFlaps({ isFlapping, marksSeconds }: FlapHistory, policy: Policy): Uint8Array | undefined {
  const [last, ...earlier] = marksSeconds;
  if (last === undefined) return undefined;
  const gaps = Math.min(FLAP_THRESHOLD_MAX - 1, Math.max(1, policy.flapThreshold - 1));
  const { none, unitSeconds } = gapForm(gaps, policy);
  let unit = Math.floor(last / unitSeconds);
  let isLast = false;
  let rest = 0;
  for (let at = 0; at < gaps; at += 1) {
    const mark = earlier[at];
    const gap = mark === undefined ? none : unit - Math.floor(mark / unitSeconds);
    isLast ||= gap < 0 || gap >= none;
    rest = rest * (none + 1) + (isLast ? none : gap);
    unit -= gap;
  }
  const head = (Number(isFlapping) * 4 + gaps - 1) * TIME_MODULUS + (last % TIME_MODULUS);
  const bytesOf = (value: number, bytes: number): number[] =>
    Array.from({ length: bytes }, (_, at) => Math.floor(value / 256 ** (bytes - 1 - at)) % 256);
  return Uint8Array.from([...bytesOf(head, 4), ...bytesOf(rest, 3)]);
}

/** The marks that are not discounted. */
export function countedMarks(
  { marksSeconds }: FlapHistory,
  { policy, ownFaultsAtMs }: Pick<FlapTime, 'policy' | 'ownFaultsAtMs'>,
): readonly number[] {
  const graceSeconds = overProfiles(policy, 'nodeMonitorGracePeriodSeconds', Math.max);
  const isDiscounted = (mark: number): boolean =>
    ownFaultsAtMs.some((atMs) => {
      const faultSeconds = Math.floor(atMs / 1_000);
      return mark <= faultSeconds && mark >= faultSeconds - graceSeconds;
    });
  return marksSeconds.filter((mark) => !isDiscounted(mark));
}

/** The bytes to store with a mark at `nowMs` that counts; undefined: the policy does not count marks. */
export function flapsAfterMark(packed: Uint8Array | undefined, at: FlapTime): Uint8Array | undefined {
  const { nowMs, policy } = at;
  if (policy.flapThreshold === 0) return undefined;
  const history = flapHistoryOf(packed, nowMs, policy);
  const mark = Math.floor(nowMs / 1_000);
  const earlier = countedMarks(history, at).filter((each) => each < mark && mark - each <= policy.flapWindowSeconds);
  const marksSeconds = [mark, ...earlier].slice(0, policy.flapThreshold);
  return packedFlaps({ isFlapping: history.isFlapping, marksSeconds }, policy);
}

export type FlapVerdict =
  | { readonly kind: 'unchanged' }
  /** `marksSeconds`: the marks that reached the threshold, newest first. Epoch seconds. */
  | { readonly kind: 'begin'; readonly marksSeconds: readonly number[] }
  /** `sinceSeconds`: the last mark; undefined: the policy does not count marks, or the last mark is discounted. */
  | { readonly kind: 'end'; readonly sinceSeconds: number | undefined };

const UNCHANGED: FlapVerdict = { kind: 'unchanged' };

/** Whether the node begins or ends flapping. A begin waits until the gate is open and total disruption is over. */
export function flapVerdict(
  history: FlapHistory,
  at: FlapTime & { /** The gate is open, without total disruption. */ readonly mayBegin: boolean },
): FlapVerdict {
  const { flapThreshold, flapWindowSeconds, flapStableSeconds } = at.policy;
  const marks = flapThreshold === 0 ? [] : countedMarks(history, at);
  const last = marks[0];
  const isStable = last === undefined || at.nowMs >= (last + flapStableSeconds) * 1_000;
  if (history.isFlapping) return isStable ? { kind: 'end', sinceSeconds: last } : UNCHANGED;
  const first = marks[flapThreshold - 1];
  // Evaluated again, the pass that made the last mark decides nothing (L10).
  const isOfThisPass = last !== undefined && last >= Math.floor(at.nowMs / 1_000);
  if (isStable || isOfThisPass || !at.mayBegin || first === undefined || last - first > flapWindowSeconds)
    return UNCHANGED;
  return { kind: 'begin', marksSeconds: marks.slice(0, flapThreshold) };
}

interface FlapTarget {
  readonly taints: TaintList;
  readonly conditions: readonly NodeCondition[];
}

/** Taints and conditions of a Node that begins or ends flapping. The taint of an earlier flapEffect is removed. */
export function flappingState(
  { taints, conditions }: FlapTarget,
  verdict: Exclude<FlapVerdict, { kind: 'unchanged' }>,
  { nowMs, policy }: Pick<FlapTime, 'nowMs' | 'policy'>,
): { readonly taints: readonly Taint[]; readonly conditions: readonly NodeCondition[] } {
  const isFlapping = verdict.kind === 'begin';
  const status = isFlapping ? 'True' : 'False';
  const stored = conditionOf(conditions, FLAPPING_CONDITION);
  const condition: NodeCondition = {
    type: FLAPPING_CONDITION,
    status,
    reason: isFlapping ? 'MarkedRepeatedly' : 'Stable',
    message: flapText(verdict, policy),
    lastTransitionTime: stored?.status === status ? (stored.lastTransitionTime ?? null) : rfc3339(nowMs),
  };
  const others = taints.filter(({ key }) => key !== FLAPPING_TAINT_KEY).map((taint) => ({ ...taint }));
  return {
    taints: isFlapping ? [...others, { key: FLAPPING_TAINT_KEY, effect: policy.flapEffect }] : others,
    conditions: [...conditions.filter(({ type }) => type !== FLAPPING_CONDITION), condition],
  };
}

/** For the condition, the event and the decision record. */
export function flapText(verdict: Exclude<FlapVerdict, { kind: 'unchanged' }>, policy: FlapTexts): string {
  if (verdict.kind === 'end') {
    if (policy.flapThreshold === 0) return 'Marks are not counted any more: flapThreshold is 0';
    return verdict.sinceSeconds === undefined
      ? 'The last marks do not count: total disruption or a failing heartbeat path followed'
      : `No mark for ${policy.flapStableSeconds} s`;
  }
  const { marksSeconds } = verdict;
  const spanSeconds = (marksSeconds[0] ?? 0) - (marksSeconds.at(-1) ?? 0);
  const limit = `threshold ${policy.flapThreshold} within ${policy.flapWindowSeconds} s`;
  return `Marked Unknown ${marksSeconds.length} times in ${spanSeconds} s (${limit})`;
}

type FlapTexts = Pick<Policy, 'flapThreshold' | 'flapWindowSeconds' | 'flapStableSeconds'>;
