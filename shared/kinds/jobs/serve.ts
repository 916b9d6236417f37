/** Jobs and CronJobs. */

import { ageSince, formatAge } from '../../kubernetes/age.ts';
import { ageColumn, NONE, nameColumn, selectorColumn, textColumn } from '../../kubernetes/columns.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import { ageOf, booleanColumn, integerColumn, nameOf, selectorCell, templateCells, templateColumns } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubeCronJob, KubeJob } from '../types.ts';
import { prepareCronJob, prepareJob } from './defaults.ts';
import { CRON_JOBS, JOBS } from './resource.ts';
import { validateCronJob, validateJob } from './validate.ts';

function jobStatus({ metadata, status }: KubeJob): string {
  const conditions = new Map((status?.conditions ?? []).map(({ type = '', status: state }) => [type, state]));
  if (conditions.get('Complete') === 'True') return 'Complete';
  if (conditions.get('Failed') === 'True') return 'Failed';
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  if (conditions.get('Suspended') === 'True') return 'Suspended';
  if (conditions.get('FailureTarget') === 'True') return 'FailureTarget';
  return conditions.get('SuccessCriteriaMet') === 'True' ? 'SuccessCriteriaMet' : 'Running';
}

function completionsCell({ spec = {}, status = {} }: KubeJob): string {
  const { succeeded = 0 } = status;
  if (spec.completions !== undefined) return `${succeeded}/${spec.completions}`;
  const { parallelism = 0 } = spec;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function durationCell({ status = {} }: KubeJob, nowMs: number): string {
  const startMs = parseTimeMs(status.startTime);
  return startMs === undefined ? '' : formatAge((parseTimeMs(status.completionTime) ?? nowMs) - startMs);
}

export const jobs: ResourceDescriptor = servedKind(JOBS, {
  categories: ['all'],
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Status', 'State of the Job.'),
    textColumn('Completions', 'Pods that succeeded, of the desired number.'),
    textColumn('Duration', 'Time from the start to the end.'),
    ageColumn,
    ...templateColumns,
    selectorColumn,
  ],
  row: (object: KubeJob, nowMs) => [
    nameOf(object),
    jobStatus(object),
    completionsCell(object),
    durationCell(object, nowMs),
    ageOf(object, nowMs),
    ...templateCells(object.spec?.template),
    selectorCell(object.spec?.selector),
  ],
  prepare: prepareJob,
  validate: validateJob,
});

export const cronjobs: ResourceDescriptor = servedKind(CRON_JOBS, {
  shortNames: ['cj'],
  categories: ['all'],
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Schedule', 'When Jobs start, in cron format.'),
    textColumn('Timezone', 'Time zone of the schedule.'),
    booleanColumn('Suspend', 'Whether no further Jobs are started.'),
    integerColumn('Active', 'Jobs that are running.'),
    textColumn('Last Schedule', 'Time since a Job was last scheduled.'),
    ageColumn,
    ...templateColumns,
    selectorColumn,
  ],
  row: (object: KubeCronJob, nowMs) => {
    const { spec = {}, status = {} } = object;
    return [
      nameOf(object),
      spec.schedule ?? '',
      spec.timeZone ?? NONE,
      spec.suspend === true,
      (status.active ?? []).length,
      status.lastScheduleTime === undefined ? NONE : ageSince(status.lastScheduleTime, nowMs),
      ageOf(object, nowMs),
      ...templateCells(spec.jobTemplate?.spec?.template),
      selectorCell(spec.jobTemplate?.spec?.selector),
    ];
  },
  prepare: prepareCronJob,
  validate: validateCronJob,
});
