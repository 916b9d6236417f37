/** Decision records of the CronJob controller: the Jobs that it started. */
import type { KubeCronJob } from '../../kube/application-types.ts';
import { formatTime } from '../../kube/time.ts';
import type { DraftOf, ReplayRules } from '../decisions/decision-record.ts';
import { type DueInputs, dueInputs, dueTimeMs, type JobStart } from './rule.ts';

interface CronJobInputs {
  readonly cronDue: DueInputs;
}

export type CronJobDraft = DraftOf<CronJobInputs>;

export const cronJobStartedDraft = (cronJob: KubeCronJob, { name, dueMs }: JobStart, nowMs: number): CronJobDraft => ({
  act: 'CronJobStarted',
  about: {
    kind: 'CronJob',
    namespace: cronJob.metadata.namespace ?? '',
    name: cronJob.metadata.name ?? '',
    uid: cronJob.metadata.uid ?? '',
  },
  atMs: nowMs,
  reason: `${cronJob.spec?.schedule ?? ''} was due at ${formatTime(dueMs)}: created Job ${name}`,
  rule: 'cronDue',
  inputs: dueInputs(cronJob, nowMs),
  outcome: { dueMs },
});

export const cronJobReplay: ReplayRules<CronJobInputs> = {
  cronDue: (inputs) => ({ dueMs: dueTimeMs(inputs) }),
};
