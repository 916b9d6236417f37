/**
 * DescribeInstances with a filter does not return some instances. This plan selects the ones that are requested by
 * their id, and in which pass.
 *
 * A filter returns neither instances that no longer exist nor those of other accounts. Only a request by id
 * distinguishes the two. Each such request is a call of its own, so a pass makes few of them. The order:
 *
 * 1. instances with one or two consecutive `notFound` answers, because D11 requires two of them before a deletion
 * 2. instances without an answer so far
 * 3. the others, the longest unrequested first
 *
 * An instance of another account is requested again after FOREIGN_VALID_PASSES, in case it no longer exists.
 */
import type { CloudAnswer } from './instance.ts';

/** The stored results of requests by one id. */
export interface Confirmation {
  /** The pass of the last request by this id. */
  readonly pass: number;
  /** Consecutive `notFound` answers, up to that pass. */
  readonly consecutiveNotFound: number;
  readonly isForeign: boolean;
}

export type Confirmations = ReadonlyMap<string, Confirmation>;

export interface ConfirmationPlan {
  /** Ids to request in this pass. */
  readonly requested: readonly string[];
  /** Ids of instances in other accounts, by an earlier answer that is still valid. */
  readonly foreign: readonly string[];
  /** Ids that a later pass requests. Their state is unknown. */
  readonly later: readonly string[];
}

/** Requests by id in one pass. With a pass every 5 s they are four per second, a fifth of EC2's default refill rate. */
export const CONFIRMATIONS_PER_PASS_MAX = 20;
/** Passes after which an instance of another account is requested again: five minutes with a pass every 5 s. */
export const FOREIGN_VALID_PASSES = 60;
/**
 * Consecutive answers for which an id has precedence. D11 requires two answers that are at least one period apart. Two
 * ticks may be slightly less than a period apart, three are not. After a deletion by two answers there is no third.
 */
const CONSECUTIVE_ANSWERS = 3;
/** Maximum number of kept ids. Beyond it the longest unrequested are dropped, which costs one request each. */
const KEPT_MAX = 10_000;

/**
 * @param missing ids that the response by filter does not contain
 * @param pass number of the pass, from 1
 */
export function planConfirmations(missing: readonly string[], kept: Confirmations, pass: number): ConfirmationPlan {
  const isKnownForeign = (id: string): boolean => {
    const known = kept.get(id);
    return known?.isForeign === true && pass - known.pass < FOREIGN_VALID_PASSES;
  };
  const rank = (id: string): number => {
    const known = kept.get(id);
    if (known === undefined) return 0;
    return known.consecutiveNotFound > 0 && known.consecutiveNotFound < CONSECUTIVE_ANSWERS ? -1 : known.pass;
  };
  const candidates = missing.filter((id) => !isKnownForeign(id)).toSorted((one, other) => rank(one) - rank(other));
  const rest = candidates.slice(CONFIRMATIONS_PER_PASS_MAX);
  return {
    requested: candidates.slice(0, CONFIRMATIONS_PER_PASS_MAX),
    foreign: [...missing.filter(isKnownForeign), ...rest.filter((id) => kept.get(id)?.isForeign)],
    later: rest.filter((id) => !kept.get(id)?.isForeign),
  };
}

/**
 * What to keep after a pass.
 *
 * @param answers the final answer about each id
 * @param requested ids that were requested by id in this pass
 */
export function keepConfirmations(
  kept: Confirmations,
  pass: number,
  answers: Iterable<readonly [id: string, kind: CloudAnswer['kind']]>,
  requested: ReadonlySet<string>,
): Confirmations {
  const next = new Map(kept);
  for (const [id, kind] of answers) {
    const before = next.get(id);
    if (kind === 'found') {
      next.delete(id);
    } else if (requested.has(id)) {
      const consecutiveNotFound = kind === 'notFound' ? (before?.consecutiveNotFound ?? 0) + 1 : 0;
      // Added again at the end: the first entries are the longest unrequested.
      next.delete(id);
      next.set(id, { pass, consecutiveNotFound, isForeign: kind === 'foreign' });
    } else if (before !== undefined && kind === 'failed') {
      next.set(id, { ...before, consecutiveNotFound: 0 });
    }
  }
  for (const id of next.keys()) {
    if (next.size <= KEPT_MAX) break;
    next.delete(id);
  }
  return next;
}
