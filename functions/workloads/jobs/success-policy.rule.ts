/** Rules for the success of an Indexed Job. Source: pkg/controller/job/success_policy.go. */
import type { JobSpec } from '../../../shared/kinds/types.ts';
import { parseIntervals } from './indexes.rule.ts';
import type { JobOutcome } from './outcome.rule.ts';

/** What the first rule that is met says; undefined: the Job continues. */
export function successMessageOf(
  { successPolicy, completions = 0 }: Pick<JobSpec, 'successPolicy' | 'completions'>,
  succeeded: ReadonlySet<number>,
): string | undefined {
  if (successPolicy === undefined || succeeded.size === 0) return undefined;
  const sorted = [...succeeded].sort((left, right) => left - right);
  const met = (successPolicy.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) return succeededCount !== undefined && sorted.length >= succeededCount;
    const wanted = parseIntervals(succeededIndexes, completions);
    if (wanted.length === 0) return false;
    const found = countWithin(wanted, sorted);
    const all = wanted.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    return found === all || (succeededCount !== undefined && found >= succeededCount);
  });
  return met < 0 ? undefined : `Matched rules at index ${met}`;
}

/** Both in ascending order. A rule may name more indexes than memory holds, so its intervals stay intervals. */
function countWithin(intervals: readonly (readonly [number, number])[], sorted: readonly number[]): number {
  let position = 0;
  let count = 0;
  for (const [first, last] of intervals) {
    while (sorted[position]! < first) position += 1;
    for (; sorted[position]! <= last; position += 1) count += 1;
  }
  return count;
}

export const bySuccessPolicy = (message: string | undefined): JobOutcome | undefined =>
  message === undefined ? undefined : { kind: 'Complete', reason: 'SuccessPolicy', message };
