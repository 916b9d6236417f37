import { withoutNulls } from '../../kubernetes/normal-form.ts';
import { defaultTemplate, withTemplateLabels } from '../pods/spec-defaults.ts';
import { type Prepare, preparesStatus } from '../served-kind.ts';
import type { CronJobSpec, JobSpec, KubeJob, ObjectMeta } from '../types.ts';
import { CRON_JOBS, JOBS } from './resource.ts';

const CONTROLLER_UID = 'batch.kubernetes.io/controller-uid';
const JOB_NAME = 'batch.kubernetes.io/job-name';

/** Labels that the pods of a Job with a generated selector have. */
export const generatedLabels = ({ name = '', uid = '' }: ObjectMeta): Readonly<Record<string, string>> => ({
  [CONTROLLER_UID]: uid,
  [JOB_NAME]: name,
  'controller-uid': uid,
  'job-name': name,
});

const NO_LIMIT = 2_147_483_647;

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

const prepared = preparesStatus(JOBS, storedSpec);

export const prepareJob: Prepare = {
  ...prepared,
  prepareForCreate: (object, context) => withLabels(withSelector(prepared.prepareForCreate(object, context))),
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

export const prepareCronJob = preparesStatus(CRON_JOBS, storedCronSpec);
