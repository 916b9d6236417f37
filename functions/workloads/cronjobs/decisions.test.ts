import { expect, it } from 'vitest';
import { replayed } from '../../../test/support/replayed.ts';
import { cronJobReplay, cronJobSkippedDraft, cronJobStartedDraft } from './decisions.ts';
import type { DueInputs, SkipInputs } from './rule.ts';

const MINUTE_MS = 60_000;
const cronJob = { metadata: { namespace: 'batch', name: 'c', uid: 'u' } };
const inputs: DueInputs = { schedule: '*/5 * * * *', zone: 'UTC', earliestMs: 0, nowMs: 11 * MINUTE_MS };
const dueMs = 10 * MINUTE_MS;
const scheduledAt = '1970-01-01T00:10:00Z';
const about = { kind: 'CronJob', namespace: 'batch', name: 'c', uid: 'u' };

it('the record of a Job that is started has its time, and replays', () => {
  const draft = cronJobStartedDraft(cronJob, { name: 'c-10', dueMs, scheduledAt }, inputs);
  expect(draft).toEqual({
    act: 'CronJobStarted',
    about,
    atMs: inputs.nowMs,
    reason: '*/5 * * * * was due at 1970-01-01T00:10:00Z: created Job c-10',
    rule: 'cronDue',
    inputs,
    outcome: { dueMs },
  });
  expect(replayed(draft, cronJobReplay)).toEqual({ dueMs });
});

it.each<['startingDeadline' | 'concurrencyPolicy', Partial<SkipInputs>, string]>([
  ['startingDeadline', { startingDeadlineSeconds: 59 }, 'startingDeadlineSeconds (59 s) are over'],
  [
    'concurrencyPolicy',
    { concurrencyPolicy: 'Forbid', active: 2, startingDeadlineSeconds: 60 },
    '2 of its Jobs are active, and concurrencyPolicy is Forbid',
  ],
])('the record of a time that is skipped for its %s has the reason, and replays', (cause, over, why) => {
  const read = { ...inputs, active: 0, ...over };
  const draft = cronJobSkippedDraft(cronJob, { dueMs, cause, scheduledAt, inputs: read });
  expect(draft).toEqual({
    act: 'CronJobSkipped',
    about,
    atMs: inputs.nowMs,
    reason: `*/5 * * * * was due at 1970-01-01T00:10:00Z, no Job was created: ${why}`,
    rule: 'cronSkip',
    inputs: read,
    outcome: { dueMs, cause },
  });
  expect(replayed(draft, cronJobReplay)).toEqual({ dueMs, cause });
});

it.each<[string, Partial<SkipInputs>]>([
  ['no active Job', { concurrencyPolicy: 'Forbid', active: 0 }],
  ['another policy', { concurrencyPolicy: 'Allow', active: 1 }],
  ['no time that has come', { earliestMs: dueMs, concurrencyPolicy: 'Forbid', active: 1 }],
])('replays to no skipped time with %s', (_what, over) => {
  const read = { ...inputs, active: 0, ...over };
  const draft = cronJobSkippedDraft(cronJob, { dueMs, cause: 'concurrencyPolicy', scheduledAt, inputs: read });
  expect(replayed(draft, cronJobReplay)).toEqual({});
});
