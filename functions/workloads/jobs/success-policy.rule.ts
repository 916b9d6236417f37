/** Rules for the success of an Indexed Job. Source: pkg/controller/job/success_policy.go. */
import type { JobSpec } from '../../../shared/kinds/types.ts';
import { countOf, countShared, type Indexes, parseIndexes } from './indexes.rule.ts';
import type { JobOutcome } from './outcome.rule.ts';

/** What the first rule that is met says; undefined: the Job continues. */
export function successMessageOf(
  { successPolicy, completions = 0 }: Pick<JobSpec, 'successPolicy' | 'completions'>,
  succeeded: Indexes,
): string | undefined {
  if (successPolicy === undefined || succeeded.length === 0) return undefined;
  const met = (successPolicy.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) return succeededCount !== undefined && countOf(succeeded) >= succeededCount;
    const wanted = parseIndexes(succeededIndexes, completions);
    if (wanted.length === 0) return false;
    const found = countShared(wanted, succeeded);
    return found === countOf(wanted) || (succeededCount !== undefined && found >= succeededCount);
  });
  return met < 0 ? undefined : `Matched rules at index ${met}`;
}

export const bySuccessPolicy = (message: string | undefined): JobOutcome | undefined =>
  message === undefined ? undefined : { kind: 'Complete', reason: 'SuccessPolicy', message };
