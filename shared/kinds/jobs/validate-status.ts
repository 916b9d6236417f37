/**
 * The status of a Job (pkg/apis/batch/validation/validation.go: validateJobStatus, ValidateJobStatusUpdate;
 * pkg/registry/batch/job/strategy.go says which rules apply to which change). A rule that compares fields holds for a
 * write that changes one of them: a status that was stored before can still be updated.
 */

import {
  duplicate,
  IMMUTABLE,
  invalidValue,
  invalidWhole,
  nonNegative,
  required,
  sameJson,
} from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import type { JobStatus, KubeJob } from '../types.ts';

const COUNTS = ['active', 'succeeded', 'failed', 'ready', 'terminating'] as const;

/** Once true, they stay true. */
const TERMINAL = ['Failed', 'Complete', 'FailureTarget', 'SuccessCriteriaMet'];

/** Pairs that are never both true. */
const EXCLUSIVE = [
  ['Complete', 'Failed', 'Complete=True and Failed=true'],
  ['Complete', 'FailureTarget', 'Complete=True and FailureTarget=true'],
  ['SuccessCriteriaMet', 'Failed', 'SuccessCriteriaMet=True and Failed=true'],
  ['SuccessCriteriaMet', 'FailureTarget', 'SuccessCriteriaMet=True and FailureTarget=true'],
] as const;

/** The first needs the second. */
const PRECEDED = [
  ['Failed', 'FailureTarget', 'Failed=True condition without the FailureTarget=true condition'],
  ['Complete', 'SuccessCriteriaMet', 'Complete=True condition without the SuccessCriteriaMet=true condition'],
] as const;

const trueConditions = ({ conditions = [] }: JobStatus): ReadonlySet<string> =>
  new Set(conditions.filter(({ status }) => status === 'True').map(({ type = '' }) => type));

/** Uids of pods: none empty, none twice, not even in both lists. */
function validateUncounted({ uncountedTerminatedPods: uncounted }: JobStatus): Cause[] {
  const seen = new Set<string>();
  return (['succeeded', 'failed'] as const).flatMap((list) =>
    (uncounted?.[list] ?? []).flatMap((uid, index) => {
      const field = `status.uncountedTerminatedPods.${list}[${index}]`;
      if (uid === '') return [invalidValue(field, uid, 'must not be empty')];
      if (seen.has(uid)) return [duplicate(field, uid)];
      seen.add(uid);
      return [];
    }),
  );
}

type Interval = readonly [first: number, last: number];

/** A part of a text such as `0,2-4`, or what is wrong with it. */
function intervalOf(part: string, completions: number): Interval | string {
  const limits = part.split('-');
  if (limits.length > 2) {
    return `the fragment ${JSON.stringify(part)} violates the requirement that an index interval can have at most two parts separated by '-'`;
  }
  for (const limit of limits) {
    if (!/^[+]?\d+$/.test(limit)) return `cannot convert string to integer for index: ${JSON.stringify(limit)}`;
    if (Number(limit) >= completions) return `too large index: ${JSON.stringify(limit)}`;
  }
  const [first = 0, last = first] = limits.map(Number);
  return limits.length > 1 && first >= last ? notIncreasing(first, last) : [first, last];
}

const notIncreasing = (previous: number, current: number): string =>
  `non-increasing order, previous: ${previous}, current: ${current}`;

/** How many indexes a text such as `0,2-4` has, or what is wrong with it. */
export function checkIndexes(text: string, completions: number): number | string {
  let total = 0;
  let previous = -1;
  for (const part of text === '' ? [] : text.split(',')) {
    const interval = intervalOf(part, completions);
    if (typeof interval === 'string') return interval;
    const [first, last] = interval;
    if (previous >= first) return notIncreasing(previous, first);
    total += last - first + 1;
    previous = last;
  }
  return total;
}

/** The first index that both texts have. Parts of another form have none: they are reported by themselves. */
function overlapOf(completed: string, failed: string, completions: number): number | undefined {
  const [left, right] = [completed, failed].map((text) =>
    text.split(',').flatMap((part) => {
      const interval = intervalOf(part, completions);
      return typeof interval === 'string' ? [] : [interval];
    }),
  ) as [Interval[], Interval[]];
  for (let one = 0, other = 0; one < left.length && other < right.length; ) {
    const [[first, last], [from, to]] = [left[one]!, right[other]!];
    if (first <= to && from <= last) return Math.max(first, from);
    if (first <= from) one += 1;
    else other += 1;
  }
  return undefined;
}

function indexesCauses(name: string, text: string, completions: number | undefined): Cause[] {
  const fault = completions === undefined ? 0 : checkIndexes(text, completions);
  return typeof fault === 'string' ? [invalidValue(`status.${name}`, text, `error parsing ${name}: ${fault}`)] : [];
}

export function validateJobStatus({ spec = {}, status = {} }: KubeJob, { status: before = {} }: KubeJob): Cause[] {
  const causes = [
    ...COUNTS.flatMap((name) => nonNegative(`status.${name}`, status[name])),
    ...validateUncounted(status),
  ];
  const refuse = (isWrong: boolean, cause: Cause): void => {
    if (isWrong) causes.push(cause);
  };
  const conditions = (detail: string): Cause => invalidWhole('status.conditions', detail);
  const now = trueConditions(status);
  const then = trueConditions(before);
  const differs = (...names: (keyof JobStatus)[]): boolean =>
    names.some((name) => !sameJson(status[name], before[name]));
  const turns = (...types: string[]): boolean => types.some((type) => now.has(type) !== then.has(type));
  const isComplete = now.has('Complete');
  const isFinished = isComplete || now.has('Failed');
  const isFinishedChanged = isFinished !== (then.has('Complete') || then.has('Failed'));

  for (const [one, other, which] of EXCLUSIVE) {
    const isNew = one === 'SuccessCriteriaMet' || turns(one, other);
    refuse(isNew && now.has(one) && now.has(other), conditions(`cannot set ${which} conditions`));
  }
  for (const [one, other, which] of PRECEDED) {
    refuse(turns(one, other) && now.has(one) && !now.has(other), conditions(`cannot set ${which}`));
  }
  for (const type of TERMINAL) {
    const which = type === 'SuccessCriteriaMet' ? `the ${type}=True condition` : `the terminal ${type}=True condition`;
    refuse(then.has(type) && !now.has(type), conditions(`cannot disable ${which}`));
  }
  refuse(
    then.has('Complete') && !then.has('SuccessCriteriaMet') && now.has('SuccessCriteriaMet'),
    conditions('cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions'),
  );
  refuse(
    spec.successPolicy !== undefined && isComplete && !now.has('SuccessCriteriaMet'),
    conditions('cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True'),
  );

  const { active = 0, ready = 0, terminating = 0, startTime, completionTime, completedIndexes = '' } = status;
  if (turns('Complete') || differs('completionTime')) {
    const why = 'cannot set completionTime when there is no Complete=True condition';
    refuse(completionTime !== undefined && !isComplete, invalidValue('status.completionTime', completionTime, why));
    const missing = required('status.completionTime', 'completionTime is required for Complete jobs');
    refuse(completionTime === undefined && isComplete, missing);
  }
  refuse(
    differs('startTime', 'completionTime') &&
      (parseTimeMs(completionTime) ?? Number.POSITIVE_INFINITY) < (parseTimeMs(startTime) ?? 0),
    invalidValue('status.completionTime', completionTime, 'must be equal to or after `startTime`'),
  );
  refuse(
    before.completionTime !== undefined && completionTime !== undefined && differs('completionTime'),
    invalidValue('status.completionTime', completionTime, IMMUTABLE),
  );
  refuse(
    before.startTime !== undefined && differs('startTime') && spec.suspend !== true,
    required('status.startTime', 'startTime cannot be removed for unsuspended job'),
  );
  refuse(
    (isFinishedChanged || differs('startTime')) && isFinished && startTime === undefined,
    required('status.startTime', 'startTime is required for finished job'),
  );
  for (const [name, count] of Object.entries({ active, terminating } as const)) {
    refuse(
      (isFinishedChanged || differs(name as 'active')) && isFinished && count > 0,
      invalidValue(`status.${name}`, count, `${name}>0 is invalid for finished job`),
    );
  }
  const uncounted = status.uncountedTerminatedPods;
  refuse(
    (isFinishedChanged || differs('uncountedTerminatedPods')) &&
      isFinished &&
      (uncounted?.succeeded ?? []).length + (uncounted?.failed ?? []).length > 0,
    invalidValue('status.uncountedTerminatedPods', uncounted, 'must be empty for finished job'),
  );
  refuse(
    differs('ready', 'active') && ready > active,
    invalidValue('status.ready', ready, 'cannot set more ready pods than active'),
  );

  const isIndexed = spec.completionMode === 'Indexed';
  if (differs('completedIndexes')) {
    const field = 'status.completedIndexes';
    causes.push(...indexesCauses('completedIndexes', completedIndexes, spec.completions));
    const why = 'cannot set non-empty completedIndexes when non-indexed completion mode';
    refuse(completedIndexes !== '' && !isIndexed, invalidValue(field, completedIndexes, why));
  }
  const { failedIndexes } = status;
  const failed = (why: string): Cause => invalidValue('status.failedIndexes', failedIndexes, why);
  if (failedIndexes !== undefined && differs('failedIndexes')) {
    const why = 'cannot set non-null failedIndexes when backoffLimitPerIndex is null';
    if (spec.backoffLimitPerIndex === undefined) causes.push(failed(why));
    else causes.push(...indexesCauses('failedIndexes', failedIndexes, spec.completions));
  }
  if (failedIndexes !== undefined && differs('failedIndexes', 'completedIndexes')) {
    const index = overlapOf(completedIndexes, failedIndexes, spec.completions ?? 0);
    refuse(index !== undefined, failed(`failedIndexes and completedIndexes overlap at index: ${index}`));
  }
  const mayShrink = isIndexed && spec.completions === spec.parallelism;
  for (const name of ['failed', 'succeeded'] as const) {
    const count = status[name] ?? 0;
    refuse(
      count < (before[name] ?? 0) && !(name === 'succeeded' && mayShrink),
      invalidValue(`status.${name}`, count, `cannot decrease the ${name} counter`),
    );
  }
  return causes;
}
