/**
 * Which instances that EC2's filtered answer lacks are asked about one by one, and when.
 *
 * A filter is silent both about instances that are no more and about those of other accounts; only a question by id tells
 * them apart. Such a question is a call of its own, so a pass has few of them. Turns are fair, and keep to what D11 needs:
 * an id that was not known last time goes first, so that two answers stand side by side; then whoever waits longest.
 * An id of another account stays one: it is asked about again only now and then, to hear when its instance is no more.
 */

/** What is kept of one id between passes. */
export interface Confirmation {
  /** The pass that last asked by this id. */
  readonly pass: number;
  /** `notFound` answers of passes side by side. */
  readonly notFoundInRow: number;
  readonly isForeign: boolean;
}

export type Confirmations = ReadonlyMap<string, Confirmation>;

export interface ConfirmationPlan {
  readonly ask: readonly string[];
  /** Another account's by an earlier answer, which stands. */
  readonly foreign: readonly string[];
  /** Not in this pass; nothing is known of them. */
  readonly later: readonly string[];
}

/** Questions by id in one pass. At 5 s four calls a second, a fifth of what EC2 refills by default. */
export const CONFIRMATIONS_A_PASS_MAX = 20;
/** An instance of another account is asked about again after so many passes: five minutes at 5 s. */
export const FOREIGN_STANDS_PASSES = 60;
/**
 * Answers side by side for which an id goes first. D11 asks for two a period apart; two ticks may be a little less than that
 * apart, three are not. Whose Node went after two takes no third.
 */
const ANSWERS_SIDE_BY_SIDE = 3;
/** Ids kept; the longest unheard of are forgotten, which costs a question. */
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
    return known.notFoundInRow > 0 && known.notFoundInRow < ANSWERS_SIDE_BY_SIDE ? -1 : known.pass;
  };
  const open = missing.filter((id) => !stands(id)).toSorted((one, other) => rank(one) - rank(other));
  const rest = open.slice(CONFIRMATIONS_A_PASS_MAX);
  return {
    ask: open.slice(0, CONFIRMATIONS_A_PASS_MAX),
    foreign: [...missing.filter(stands), ...rest.filter((id) => kept.get(id)?.isForeign)],
    later: rest.filter((id) => !kept.get(id)?.isForeign),
  };
}

/** What to keep after a pass, by the answer each id got in the end and whether it was asked about by itself. */
export function keepConfirmations(
  kept: Confirmations,
  pass: number,
  answers: Iterable<readonly [id: string, kind: 'found' | 'notFound' | 'foreign' | 'failed']>,
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

/** Why an instance that EC2 knows by its id and yet does not show is none of ours. */
export const hiddenInstanceReason = (instanceId: string): string =>
  `EC2 knows ${instanceId} and does not show it: it is another account's`;

export const NOT_CONFIRMED =
  'EC2: not in the answer, and not asked about by its id yet; there are many such instances, a later pass asks';
