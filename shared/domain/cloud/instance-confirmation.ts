/**
 * Plans which instances, missing from EC2's filtered response, are looked up by id, and when.
 *
 * A filtered response omits deleted instances and those of other accounts. Only a lookup by id distinguishes the two.
 * Each lookup is a call, so a pass has few of them. The order is fair and meets D11:
 *   1. Ids that the last lookup did not find, to get two such answers in a row.
 *   2. The ids with the oldest lookup.
 * An id of another account is looked up again only rarely, to detect that its instance no longer exists.
 */

import type { CloudAnswer } from './instance.ts';

/** The record of one id between passes. */
export interface Confirmation {
  /** The pass with the last lookup of this id. */
  readonly pass: number;
  /** Consecutive `notFound` answers. */
  readonly notFoundInRow: number;
  readonly isForeign: boolean;
}

export type Confirmations = ReadonlyMap<string, Confirmation>;

export interface ConfirmationPlan {
  readonly ask: readonly string[];
  /** In another account, by an earlier answer that is still valid. */
  readonly foreign: readonly string[];
  /** Not looked up in this pass; their state is unknown. */
  readonly later: readonly string[];
}

/** Lookups by id per pass. With a pass every 5 s four calls per second, a fifth of EC2's default refill rate. */
export const CONFIRMATIONS_PER_PASS_MAX = 20;
/** Passes until an instance of another account is looked up again: five minutes at 5 s. */
export const FOREIGN_STANDS_PASSES = 60;
/**
 * An id has priority until it has this many consecutive answers. D11 requires two that are one period apart. Two ticks
 * may be slightly closer than that, three are not. No third answer is needed if the Node was deleted after the second.
 */
const CONSECUTIVE_ANSWERS = 3;
/** Stored ids. The ones with the oldest answer are dropped first, which costs another lookup. */
const KEPT_MAX = 10_000;

/** Passes count up from 1. */
export function planConfirmations(missing: readonly string[], kept: Confirmations, pass: number): ConfirmationPlan {
  const stands = (id: string): boolean => {
    const known = kept.get(id);
    return known?.isForeign === true && pass - known.pass < FOREIGN_STANDS_PASSES;
  };
  const rank = (id: string): number => {
    const known = kept.get(id);
    if (known === undefined) return 0;
    return known.notFoundInRow > 0 && known.notFoundInRow < CONSECUTIVE_ANSWERS ? -1 : known.pass;
  };
  const open = missing.filter((id) => !stands(id)).toSorted((one, other) => rank(one) - rank(other));
  const rest = open.slice(CONFIRMATIONS_PER_PASS_MAX);
  return {
    ask: open.slice(0, CONFIRMATIONS_PER_PASS_MAX),
    foreign: [...missing.filter(stands), ...rest.filter((id) => kept.get(id)?.isForeign)],
    later: rest.filter((id) => !kept.get(id)?.isForeign),
  };
}

/** What to keep after a pass, by the answer each id got in the end and whether it was asked about by itself. */
export function keepConfirmations(
  kept: Confirmations,
  pass: number,
  answers: Iterable<readonly [id: string, kind: CloudAnswer['kind']]>,
  asked: ReadonlySet<string>,
): Confirmations {
  const next = new Map(kept);
  for (const [id, kind] of answers) {
    const before = next.get(id);
    if (kind === 'found') {
      next.delete(id);
    } else if (asked.has(id)) {
      const notFoundInRow = kind === 'notFound' ? (before?.notFoundInRow ?? 0) + 1 : 0;
      // Anew at the end: the front is what was longest unheard of.
      next.delete(id);
      next.set(id, { pass, notFoundInRow, isForeign: kind === 'foreign' });
    } else if (before !== undefined && kind === 'failed') {
      next.set(id, { ...before, notFoundInRow: 0 });
    }
  }
  for (const id of next.keys()) {
    if (next.size <= KEPT_MAX) break;
    next.delete(id);
  }
  return next;
}
