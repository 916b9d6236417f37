/** Decision records of the CronJob controller: the Jobs that it started, and the times that it skipped. */
import type { DecisionAbout, DraftOf, ReplayRules } from '../../../shared/decisions/decision-record.ts';
import { type DueInputs, dueTimeMs, type JobSkip, type JobStart, type SkipInputs, skippedTime } from './rule.ts';

interface CronJobInputs {
  readonly cronDue: DueInputs;
  readonly cronSkip: SkipInputs;
}

export type CronJobDraft = DraftOf<CronJobInputs>;

/** A CronJob, as far as a record names it. */
interface RecordedCronJob {
  readonly metadata: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
}

const aboutCronJob = ({ metadata }: RecordedCronJob): DecisionAbout => ({
  kind: 'CronJob',
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
});

export const cronJobStartedDraft = (
  cronJob: RecordedCronJob,
  { name, dueMs, scheduledAt }: JobStart,
  inputs: DueInputs,
): CronJobDraft => ({
  act: 'CronJobStarted',
  about: aboutCronJob(cronJob),
  atMs: inputs.nowMs,
  reason: `${inputs.schedule} was due at ${scheduledAt}: created Job ${name}`,
  rule: 'cronDue',
  inputs,
  outcome: { dueMs },
});

/** Once for each time of the schedule and cause. */
export const cronJobSkippedDraft = (
  cronJob: RecordedCronJob,
  { dueMs, cause, scheduledAt, inputs }: JobSkip,
): CronJobDraft => ({
  act: 'CronJobSkipped',
  about: aboutCronJob(cronJob),
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
