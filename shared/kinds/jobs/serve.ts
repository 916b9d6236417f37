/** Jobs and CronJobs. */
import { ageSince, formatAge } from '../../kubernetes/age.ts';
import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutNulls } from '../../kubernetes/normal-form.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import type { CronJobSpec, JobSpec, KubeCronJob, KubeJob } from '../application-types.ts';
import { ageOf, booleanColumn, integerColumn, nameOf, selectorCell, templateCells, templateColumns } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { defaultTemplate, withTemplateLabels } from '../pods/template-defaults.ts';
import { type KindNames, preparesStatus, STATUS_PART, storedKind } from '../stored-kind.ts';
import type { KubeObject } from '../types.ts';
import { generatedLabels, validateCronJob, validateJob } from './validate.ts';

const JOBS: KindNames = {
  group: 'batch',
  resource: 'jobs',
  kind: 'Job',
  categories: ['all'],
  scope: 'namespaced',
};

const NO_LIMIT = 2_147_483_647;
const CONTROLLER_UID = 'batch.kubernetes.io/controller-uid';

/** A pattern without a status means True. */
function withStatuses({ podFailurePolicy: policy, ...spec }: JobSpec): JobSpec {
  if (policy === undefined) return spec;
  const rules = (policy.rules ?? []).map(({ onPodConditions, ...rule }) =>
    onPodConditions === undefined
      ? rule
      : { ...rule, onPodConditions: onPodConditions.map((each) => ({ ...each, status: each.status || 'True' })) },
  );
  return { ...spec, podFailurePolicy: { ...policy, rules } };
}

/** Defaults of pkg/apis/batch/v1/defaults.go. */
function storedSpec(given: JobSpec = {}): JobSpec {
  const spec = withoutNulls(given);
  const isSingle = spec.completions === undefined && spec.parallelism === undefined;
  return {
    ...(isSingle ? { completions: 1 } : {}),
    parallelism: 1,
    backoffLimit: spec.backoffLimitPerIndex === undefined ? 6 : NO_LIMIT,
    completionMode: 'NonIndexed',
    suspend: false,
    manualSelector: false,
    podReplacementPolicy: spec.podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed',
    ...withStatuses(spec),
    template: defaultTemplate(spec.template),
  };
}

/**
 * The Job with the selector of its own uid, and its labels on the template, unless the client selects pods itself. What
 * the client set stays: a contradiction is refused. Source: pkg/registry/batch/job/strategy.go, generateSelector.
 */
function withSelector(job: KubeJob): KubeJob {
  const { spec = {}, metadata } = job;
  if (spec.manualSelector === true) return job;
  const { template = {}, selector } = spec;
  const labels = { ...generatedLabels(metadata), ...template.metadata?.labels };
  const matchLabels = { [CONTROLLER_UID]: metadata.uid ?? '', ...selector?.matchLabels };
  const ownTemplate = { ...template, metadata: { ...template.metadata, labels } };
  return { ...job, spec: { ...spec, selector: { ...selector, matchLabels }, template: ownTemplate } };
}

/** With the labels that the template got for its selector. Source: pkg/apis/batch/v1/defaults.go. */
const withLabels = (job: KubeJob): KubeJob => withTemplateLabels(job, job.spec?.template);

const prepareJob = preparesStatus(JOBS, storedSpec);

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

export const jobs: ResourceDescriptor = storedKind(JOBS, {
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Status', 'State of the Job.'),
    textColumn('Completions', 'Pods that succeeded, of the desired number.'),
    textColumn('Duration', 'Time from the start to the end.'),
    ageColumn,
    ...templateColumns,
    textColumn('Selector', 'Labels of the pods.', 1),
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
  selectableFields: { 'status.successful': (object: KubeJob) => String(object.status?.succeeded ?? 0) },
  prepare: {
    ...prepareJob,
    prepareForCreate: (object: KubeObject, context) =>
      withLabels(withSelector(prepareJob.prepareForCreate(object, context))),
  },
  validate: validateJob,
});

const CRON_JOBS: KindNames = {
  group: 'batch',
  resource: 'cronjobs',
  kind: 'CronJob',
  shortNames: ['cj'],
  categories: ['all'],
  scope: 'namespaced',
};

function storedCronSpec(given: CronJobSpec = {}): CronJobSpec {
  const spec = withoutNulls(given);
  const { jobTemplate = {} } = spec;
  const jobSpec = { ...withStatuses(jobTemplate.spec ?? {}), template: defaultTemplate(jobTemplate.spec?.template) };
  return {
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
    ...spec,
    concurrencyPolicy: spec.concurrencyPolicy || 'Allow',
    jobTemplate: { ...jobTemplate, metadata: { creationTimestamp: null, ...jobTemplate.metadata }, spec: jobSpec },
  };
}

export const cronjobs: ResourceDescriptor = storedKind(CRON_JOBS, {
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
    textColumn('Selector', 'Labels of the pods.', 1),
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
  prepare: preparesStatus(CRON_JOBS, storedCronSpec),
  validate: validateCronJob,
});
