import type { Taint } from '../../kubernetes/kubernetes.ts';
import { parseRfc3339, rfc3339RoundedUp } from '../../kubernetes/rfc3339.ts';
import { findTaint, type TaintList } from './taint.ts';

/** A NoExecute taint with its time as a number. */
export interface NoExecuteTaint {
  readonly key: string;
  readonly value: string;
  /** Server time at which the taint was added. Undefined without a readable timeAdded: it then counts as added now. */
  readonly addedAtMs: number | undefined;
}

/** The NoExecute taints of a node. A malformed timeAdded counts as absent. */
export const noExecuteTaints = (taints: TaintList): NoExecuteTaint[] =>
  taints
    .filter((taint) => taint.effect === 'NoExecute')
    .map((taint) => ({
      key: taint.key,
      value: taint.value ?? '',
      addedAtMs: taint.timeAdded === undefined ? undefined : parseRfc3339(taint.timeAdded),
    }));

/**
 * The list that a client wrote, with the server's `timeAdded` on every NoExecute taint: the stored time of a taint with
 * the same key and value, otherwise now. A time that the client sent has no effect, because evictions count from it.
 */
export const withTaintTimes = (before: TaintList, after: TaintList, nowMs: number): Taint[] =>
  after.map((taint) => {
    if (taint.effect !== 'NoExecute') return { ...taint };
    const known = findTaint(before, taint);
    const sameValue = known !== undefined && (known.value ?? '') === (taint.value ?? '');
    return { ...taint, timeAdded: (sameValue ? known.timeAdded : undefined) ?? rfc3339RoundedUp(nowMs) };
  });

/** The stored taints, with timeAdded = now on each NoExecute taint without one. Undefined when each has one. */
export const stampedTaints = (taints: TaintList, nowMs: number): Taint[] | undefined =>
  taints.some(({ effect, timeAdded }) => effect === 'NoExecute' && timeAdded === undefined)
    ? withTaintTimes(taints, taints, nowMs)
    : undefined;
