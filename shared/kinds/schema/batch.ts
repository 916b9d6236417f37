import { labelSelector, metadata, objectMeta, objectReference } from '../../kubernetes/schema/meta.ts';
import {
  always,
  bool,
  embedded,
  int32,
  int64,
  kindStruct,
  list,
  listOf,
  optionalStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema/schema.ts';
import { podTemplateSpec } from './apps.ts';

const BATCH = 'io.k8s.api.batch.v1';

const podFailurePolicyOnExitCodesRequirement = struct(
  `${BATCH}.PodFailurePolicyOnExitCodesRequirement`,
  'Exit codes that a rule applies to.',
  {
    containerName: pointer(text('Container in question; all if not set.')),
    operator: required(text('In or NotIn.')),
    values: required(listOf({ kind: 'integer', format: 'int32' }, 'Exit codes.', { listType: 'set' })),
  },
);

const podFailurePolicyOnPodConditionsPattern = struct(
  `${BATCH}.PodFailurePolicyOnPodConditionsPattern`,
  'A pod condition that a rule applies to.',
  {
    type: required(text('Type of the condition.')),
    status: text('Status of the condition; True if not set.'),
  },
);

const podFailurePolicyRule = struct(
  `${BATCH}.PodFailurePolicyRule`,
  'What happens when a pod fails in a certain way.',
  {
    action: required(text('FailJob, FailIndex, Ignore or Count.')),
    onExitCodes: optionalStruct(podFailurePolicyOnExitCodesRequirement, 'Exit codes that the rule applies to.'),
    onPodConditions: list(podFailurePolicyOnPodConditionsPattern, 'Pod conditions that the rule applies to.'),
  },
);

const podFailurePolicy = struct(`${BATCH}.PodFailurePolicy`, 'Rules for failed pods.', {
  rules: required(list(podFailurePolicyRule, 'The rules. The first that applies is used.')),
});

const successPolicyRule = struct(`${BATCH}.SuccessPolicyRule`, 'When a Job has succeeded.', {
  succeededIndexes: pointer(text('Indexes that must have succeeded.')),
  succeededCount: pointer(int32('Number of indexes that must have succeeded.')),
});

const successPolicy = struct(`${BATCH}.SuccessPolicy`, 'Rules for the success of a Job.', {
  rules: required(list(successPolicyRule, 'The rules. One of them must be met.')),
});

const jobSpec = struct(`${BATCH}.JobSpec`, 'Desired state of a Job.', {
  parallelism: pointer(int32('Pods that may run at the same time.')),
  completions: pointer(int32('Pods that must succeed.')),
  activeDeadlineSeconds: pointer(int64('Seconds that the Job may be active.')),
  podFailurePolicy: optionalStruct(podFailurePolicy, 'Rules for failed pods.'),
  successPolicy: optionalStruct(successPolicy, 'Rules for the success of the Job.'),
  backoffLimit: pointer(int32('Retries before the Job fails; 6 if not set.')),
  backoffLimitPerIndex: pointer(int32('Retries of each index before the index fails.')),
  maxFailedIndexes: pointer(int32('Failed indexes before the Job fails.')),
  selector: optionalStruct(labelSelector, 'The pods of the Job; generated if not set.'),
  manualSelector: pointer(bool('Whether the selector is the one in the spec.')),
  template: required(embedded(podTemplateSpec, 'Template of the pods.')),
  ttlSecondsAfterFinished: pointer(int32('Seconds after the end at which the Job is deleted.')),
  completionMode: pointer(text('NonIndexed or Indexed.')),
  suspend: pointer(bool('Whether the Job is suspended.')),
  podReplacementPolicy: pointer(text('TerminatingOrFailed or Failed.')),
  managedBy: pointer(text('Controller of the Job.')),
});

const jobCondition = struct(`${BATCH}.JobCondition`, 'One aspect of the state of a Job.', {
  type: required(text('Aspect in question.')),
  status: required(text('True, False or Unknown.')),
  lastProbeTime: always(time('When the condition was last checked.')),
  lastTransitionTime: always(time('When the status last changed.')),
  reason: text('One word for the cause, for programs.'),
  message: text('Explanation for people.'),
});

const uncountedTerminatedPods = struct(
  `${BATCH}.UncountedTerminatedPods`,
  'Terminated pods that are not counted yet.',
  {
    succeeded: listOf({ kind: 'string' }, 'UIDs of succeeded pods.', { listType: 'set' }),
    failed: listOf({ kind: 'string' }, 'UIDs of failed pods.', { listType: 'set' }),
  },
);

const jobStatus = struct(`${BATCH}.JobStatus`, 'Observed state of a Job.', {
  conditions: listOf(jobCondition, 'Conditions of the object, one per type.', {
    patchStrategy: 'merge',
    mergeKey: 'type',
  }),
  startTime: pointer(time('When the Job was started.')),
  completionTime: pointer(time('When the Job completed.')),
  active: int32('Pods that are pending or running.'),
  succeeded: int32('Pods that succeeded.'),
  failed: int32('Pods that failed.'),
  terminating: pointer(int32('Pods that are terminating.')),
  completedIndexes: text('Indexes that succeeded.'),
  failedIndexes: pointer(text('Indexes that failed.')),
  uncountedTerminatedPods: optionalStruct(uncountedTerminatedPods, 'Terminated pods that are not counted yet.'),
  ready: pointer(int32('Active pods that are ready.')),
});

export const job: StructSchema = kindStruct(
  `${BATCH}.Job`,
  { group: 'batch', version: 'v1', kind: 'Job' },
  'Job represents the configuration of a single job.',
  {
    metadata,
    spec: embedded(jobSpec, 'Desired state of the Job.'),
    status: embedded(jobStatus, 'Observed state of the Job.'),
  },
);

const jobTemplateSpec = struct(`${BATCH}.JobTemplateSpec`, 'Template of the Jobs of a CronJob.', {
  metadata: embedded(objectMeta, 'Labels and annotations of the Jobs.'),
  spec: embedded(jobSpec, 'Desired state of the Jobs.'),
});

const cronJobSpec = struct(`${BATCH}.CronJobSpec`, 'Desired state of a CronJob.', {
  schedule: required(text('When Jobs start, in cron format.')),
  timeZone: pointer(text('Time zone of the schedule; that of the controller if not set.')),
  startingDeadlineSeconds: pointer(int64('Largest delay of a start in seconds.')),
  concurrencyPolicy: text('Allow, Forbid or Replace.'),
  suspend: pointer(bool('Whether no further Jobs are started.')),
  jobTemplate: required(embedded(jobTemplateSpec, 'Template of the Jobs.')),
  successfulJobsHistoryLimit: pointer(int32('Successful Jobs that are kept; 3 if not set.')),
  failedJobsHistoryLimit: pointer(int32('Failed Jobs that are kept; 1 if not set.')),
});

const cronJobStatus = struct(`${BATCH}.CronJobStatus`, 'Observed state of a CronJob.', {
  active: list(objectReference, 'Jobs that are running.'),
  lastScheduleTime: pointer(time('When a Job was last scheduled.')),
  lastSuccessfulTime: pointer(time('When a Job last succeeded.')),
});

export const cronJob: StructSchema = kindStruct(
  `${BATCH}.CronJob`,
  { group: 'batch', version: 'v1', kind: 'CronJob' },
  'CronJob represents the configuration of a single cron job.',
  {
    metadata,
    spec: embedded(cronJobSpec, 'Desired state of the CronJob.'),
    status: embedded(cronJobStatus, 'Observed state of the CronJob.'),
  },
);
