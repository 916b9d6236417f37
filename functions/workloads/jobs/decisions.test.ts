import { describe, expect, it } from 'vitest';
import { replayed } from '../../../test/support/replayed.ts';
import { jobExpiredDraft, jobFinishedDraft, jobPodsDraft, jobReplay } from './decisions.ts';
import { COMPLETE } from './outcome.rule.ts';

const metadata = { namespace: 'batch', name: 'j', uid: 'u' };
const ABOUT = { kind: 'Job', ...metadata };
const NOW_MS = 100_000;

describe('the record of pods of a Job', () => {
  it.each<['PodsCreated' | 'PodsDeleted', object, { succeeded: number; active: number }, object, number, string]>([
    [
      'PodsCreated',
      { parallelism: 3, completions: 4 },
      { succeeded: 2, active: 1 },
      { parallelism: 3, completions: 4, succeeded: 2, active: 1, isSuspended: false },
      2,
      '2 pods are wanted and 1 are active: created a, b',
    ],
    [
      'PodsDeleted',
      { parallelism: 2, suspend: true },
      { succeeded: 0, active: 2 },
      { parallelism: 2, succeeded: 0, active: 2, isSuspended: true },
      0,
      '0 pods are wanted and 2 are active: deleted a, b',
    ],
    [
      'PodsCreated',
      {},
      { succeeded: 0, active: 0 },
      { parallelism: 1, succeeded: 0, active: 0, isSuspended: false },
      1,
      '1 pods are wanted and 0 are active: created a, b',
    ],
  ])('%s with %j has the numbers before it, and replays', (act, spec, numbers, inputs, wanted, reason) => {
    const draft = jobPodsDraft(act, { metadata, spec }, { numbers, names: ['a', 'b'] }, NOW_MS);
    const outcome = { wanted };
    expect(draft).toEqual({ act, about: ABOUT, atMs: NOW_MS, reason, rule: 'jobWantedPods', inputs, outcome });
    expect('completions' in draft.inputs).toBe('completions' in inputs);
    expect(replayed(draft, jobReplay)).toEqual(outcome);
  });

  it('of a Job without a spec wants one', () => {
    const of = { numbers: { succeeded: 0, active: 0 }, names: ['a'] };
    expect(jobPodsDraft('PodsCreated', { metadata }, of, NOW_MS).outcome).toEqual({ wanted: 1 });
  });
});

describe('the record of the end of a Job', () => {
  const failure = { failed: 1, backoffLimit: 0, nowMs: NOW_MS };
  const failed = { kind: 'Failed', reason: 'BackoffLimitExceeded', message: 'm' } as const;

  it('that failed has what the rule read, and replays', () => {
    const draft = jobFinishedDraft(
      { metadata, spec: { completions: 3 } },
      { outcome: failed, failureInputs: failure, succeeded: 2 },
      NOW_MS,
    );
    expect(draft).toEqual({
      act: 'JobFinished',
      about: ABOUT,
      atMs: NOW_MS,
      reason: 'BackoffLimitExceeded: 2 pods succeeded, 1 failed',
      rule: 'jobOutcome',
      inputs: { failure, succeeded: 2, completions: 3 },
      outcome: { kind: 'Failed', reason: 'BackoffLimitExceeded' },
    });
    expect(replayed(draft, jobReplay)).toEqual(draft.outcome);
  });

  it.each([
    [1, { kind: 'Complete', reason: 'CompletionsReached' }],
    [0, { kind: 'unfinished' }],
  ])('replays to what %i successes are', (succeeded, outcome) => {
    const failureInputs = { ...failure, failed: 0 };
    const draft = jobFinishedDraft({ metadata }, { outcome: COMPLETE, failureInputs, succeeded }, NOW_MS);
    expect('completions' in draft.inputs).toBe(false);
    expect(replayed(draft, jobReplay)).toEqual(outcome);
  });

  it('by a rule of its success policy has what the rule says, and replays', () => {
    const outcome = { kind: 'Complete', reason: 'SuccessPolicy', message: 'm' } as const;
    const of = { outcome, failureInputs: { ...failure, failed: 0 }, successMessage: 'm', succeeded: 1 };
    const draft = jobFinishedDraft({ metadata, spec: { completions: 3 } }, of, NOW_MS);
    expect(replayed(draft, jobReplay)).toEqual({ kind: 'Complete', reason: 'SuccessPolicy' });
  });

  it('that expired has its time, and replays to the millisecond', () => {
    const inputs = { finishedAtMs: NOW_MS - 5_000, ttlSeconds: 5 };
    const draft = jobExpiredDraft({ metadata }, inputs, NOW_MS);
    expect(draft).toEqual({
      act: 'JobExpired',
      about: ABOUT,
      atMs: NOW_MS,
      reason: 'it finished more than 5 s ago (ttlSecondsAfterFinished)',
      rule: 'jobExpired',
      inputs,
      outcome: { expired: true },
    });
    expect(replayed(draft, jobReplay)).toEqual({ expired: true });
    expect(replayed({ ...draft, atMs: NOW_MS - 1 }, jobReplay)).toEqual({ expired: false });
  });
});
