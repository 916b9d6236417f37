import { describe, expect, it } from 'vitest';
import type { JobCondition } from '../../../shared/kinds/types.ts';
import {
  COMPLETE,
  deadlineMsOf,
  type FailureInputs,
  failureOf,
  finishedCondition,
  hasEnoughSuccesses,
  outcomeConditions,
  storedOutcome,
} from './outcome.rule.ts';

describe('the failure of a Job', () => {
  const inputs: FailureInputs = { failed: 0, backoffLimit: 2, nowMs: 60_000 };
  const LIMIT = {
    kind: 'Failed',
    reason: 'BackoffLimitExceeded',
    message: 'Job has reached the specified backoff limit',
  };
  const DEADLINE = {
    kind: 'Failed',
    reason: 'DeadlineExceeded',
    message: 'Job was active longer than specified deadline',
  };

  const INDEXES = { kind: 'Failed', reason: 'FailedIndexes', message: 'Job has failed indexes' };
  const INDEXES_MAX = {
    kind: 'Failed',
    reason: 'MaxFailedIndexesExceeded',
    message: 'Job has exceeded the specified maximal number of failed indexes',
  };

  it.each<[string, Partial<FailureInputs>, object | undefined]>([
    ['none', {}, undefined],
    ['as many failed pods as allowed', { failed: 2 }, undefined],
    ['one failed pod more', { failed: 3 }, LIMIT],
    ['restarts below the limit', { restarts: 1 }, undefined],
    ['restarts at the limit', { restarts: 2 }, LIMIT],
    ['no restart and limit 0', { restarts: 0, backoffLimit: 0 }, undefined],
    ['a restart and limit 0', { restarts: 1, backoffLimit: 0 }, LIMIT],
    ['a millisecond before the deadline', { startedAtMs: 50_001, activeDeadlineSeconds: 10 }, undefined],
    ['the deadline', { startedAtMs: 50_000, activeDeadlineSeconds: 10 }, DEADLINE],
    ['a deadline of a Job that has not started', { activeDeadlineSeconds: 0 }, undefined],
    ['a start without a deadline', { startedAtMs: 0 }, undefined],
    ['the limit before the deadline', { failed: 3, startedAtMs: 0, activeDeadlineSeconds: 1 }, LIMIT],
    ['no failed index', { indexes: { failed: 0, succeeded: 0, completions: 0, max: 0 } }, undefined],
    ['as many failed indexes as allowed', { indexes: { failed: 1, succeeded: 1, completions: 3, max: 1 } }, undefined],
    ['one failed index more', { indexes: { failed: 2, succeeded: 1, completions: 4, max: 1 } }, INDEXES_MAX],
    ['too many of the last ones', { indexes: { failed: 2, succeeded: 1, completions: 3, max: 1 } }, INDEXES_MAX],
    ['an index that is open', { indexes: { failed: 2, succeeded: 1, completions: 4 } }, undefined],
    ['a failed index, and none open', { indexes: { failed: 1, succeeded: 2, completions: 3 } }, INDEXES],
    [
      'the deadline before the indexes',
      { startedAtMs: 0, activeDeadlineSeconds: 1, indexes: { failed: 3, succeeded: 0, completions: 3 } },
      DEADLINE,
    ],
    [
      'a rule before the limit',
      { policyMessage: 'exit code 7', failed: 3 },
      { kind: 'Failed', reason: 'PodFailurePolicy', message: 'exit code 7' },
    ],
  ])('with %s', (_what, over, outcome) => {
    expect(failureOf({ ...inputs, ...over })).toEqual(outcome);
  });

  it('has a deadline from its start', () => {
    expect(deadlineMsOf({ startedAtMs: 5, activeDeadlineSeconds: 2 })).toBe(2_005);
  });
});

it('is complete with one success, or with as many as completions', () => {
  const cases = [
    [0, undefined],
    [1, undefined],
    [1, 2],
    [2, 2],
    [0, 0],
  ] as const;
  expect(cases.map(([succeeded, completions]) => hasEnoughSuccesses(succeeded, completions))).toEqual([
    false,
    true,
    false,
    true,
    true,
  ]);
});

describe('a decision that was stored', () => {
  const condition = (type: string, status = 'True', more: object = {}) => ({ type, status, ...more }) as JobCondition;

  it.each<[string, readonly JobCondition[] | undefined, object | undefined]>([
    ['none', undefined, undefined],
    [
      'of a condition that is False',
      [condition('FailureTarget', 'False'), condition('SuccessCriteriaMet', 'False')],
      undefined,
    ],
    ['of another condition', [condition('Suspended')], undefined],
    [
      'to fail',
      [condition('FailureTarget', 'True', { reason: 'R', message: 'm' })],
      { kind: 'Failed', reason: 'R', message: 'm' },
    ],
    ['to fail, without texts', [condition('FailureTarget')], { kind: 'Failed', reason: '', message: '' }],
    ['to complete', [condition('SuccessCriteriaMet')], COMPLETE],
    [
      'to complete by a rule',
      [condition('SuccessCriteriaMet', 'True', { reason: 'SuccessPolicy', message: 'm' })],
      { kind: 'Complete', reason: 'SuccessPolicy', message: 'm' },
    ],
  ])('%s', (_what, conditions, outcome) => {
    expect(storedOutcome(conditions)).toEqual(outcome);
  });

  it('is final with Complete or Failed', () => {
    const [complete, failed] = [condition('Complete'), condition('Failed')];
    expect(finishedCondition([condition('Suspended'), complete])).toBe(complete);
    expect(finishedCondition([failed])).toBe(failed);
    expect(finishedCondition([condition('Complete', 'False'), condition('FailureTarget')])).toBeUndefined();
    expect(finishedCondition()).toBeUndefined();
  });

  it('has a condition while pods terminate, and a second one then', () => {
    const failed = { kind: 'Failed', reason: '', message: '' } as const;
    expect(outcomeConditions(COMPLETE, false)).toEqual(['SuccessCriteriaMet']);
    expect(outcomeConditions(COMPLETE, true)).toEqual(['SuccessCriteriaMet', 'Complete']);
    expect(outcomeConditions(failed, false)).toEqual(['FailureTarget']);
    expect(outcomeConditions(failed, true)).toEqual(['FailureTarget', 'Failed']);
  });
});
