/** Decision records of the CronJob controller: the Jobs that it started, and the times that it skipped. */
import {
  aboutWorkload,
  type DraftOf,
  type RecordedWorkload,
  type ReplayRules,
} from '../../../shared/decisions/decision-record.ts';
import { type DueInputs, dueTimeMs, type JobSkip, type JobStart, type SkipInputs, skippedTime } from './rule.ts';

interface CronJobInputs {
  readonly cronDue: DueInputs;
  readonly cronSkip: SkipInputs;
}

export type CronJobDraft = DraftOf<CronJobInputs>;

export const cronJobStartedDraft = (
  cronJob: RecordedWorkload,
  { name, dueMs, scheduledAt }: JobStart,
  inputs: DueInputs,
): CronJobDraft => ({
  act: 'CronJobStarted',
  about: aboutWorkload('CronJob', cronJob),
  atMs: inputs.nowMs,
  reason: `${inputs.schedule} was due at ${scheduledAt}: created Job ${name}`,
  rule: 'cronDue',
  inputs,
  outcome: { dueMs },
});

/** Once for each time of the schedule and cause. */
export const cronJobSkippedDraft = (
  cronJob: RecordedWorkload,
  { dueMs, cause, scheduledAt, inputs }: JobSkip,
): CronJobDraft => ({
  act: 'CronJobSkipped',
  about: aboutWorkload('CronJob', cronJob),
  atMs: inputs.nowMs,
  reason: `${inputs.schedule} was due at ${scheduledAt}, no Job was created: ${
    cause === 'startingDeadline'
      ? `startingDeadlineSeconds (${inputs.startingDeadlineSeconds} s) are over`
      : `${inputs.active} of its Jobs are active, and concurrencyPolicy is Forbid`
  }`,
  rule: 'cronSkip',
  inputs,
  outcome: { dueMs, cause },
});

export const cronJobReplay: ReplayRules<CronJobInputs> = {
  cronDue: (inputs) => ({ dueMs: dueTimeMs(inputs) }),
  cronSkip: (inputs) => ({ ...skippedTime(inputs) }),
};
