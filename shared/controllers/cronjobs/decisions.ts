/** Decision records of the CronJob controller: the Jobs that it started. */
import type { DraftOf, ReplayRules } from '../decisions/decision-record.ts';
import { type DueInputs, dueTimeMs, type JobStart } from './rule.ts';

interface CronJobInputs {
  readonly cronDue: DueInputs;
}

export type CronJobDraft = DraftOf<CronJobInputs>;

/** A CronJob, as far as a record names it. */
interface RecordedCronJob {
  readonly metadata: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
}

export const cronJobStartedDraft = (
  { metadata }: RecordedCronJob,
  { name, dueMs, scheduledAt }: JobStart,
  inputs: DueInputs,
): CronJobDraft => ({
  act: 'CronJobStarted',
  about: {
    kind: 'CronJob',
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
  },
  atMs: inputs.nowMs,
  reason: `${inputs.schedule} was due at ${scheduledAt}: created Job ${name}`,
  rule: 'cronDue',
  inputs,
  outcome: { dueMs },
});

export const cronJobReplay: ReplayRules<CronJobInputs> = {
  cronDue: (inputs) => ({ dueMs: dueTimeMs(inputs) }),
};
