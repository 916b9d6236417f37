/** Job and CronJob (pkg/apis/batch/validation/validation.go). */
import type {
  CronJobSpec,
  ExitCodesRequirement,
  JobSpec,
  KubeCronJob,
  KubeJob,
  PodFailureRule,
} from '../application-types.ts';
import { CronError, isTimeZone, parseCron } from '../cron-schedule.ts';
import type { Cause } from '../status.ts';
import { forbiddenField, immutable, invalidValue, nonNegative, notSupported, required } from './causes.ts';
import { validateObjectMetadata } from './metadata.ts';
import { subdomainName, tooLongText } from './names.ts';
import { validateTemplate } from './template.ts';

const RULES = { namespaced: true, name: subdomainName };

/** Bounds the length of status.completedIndexes. Pods. */
const INDEXED_PARALLELISM_MAX = 100_000;
/** The name of a Job has the name of its CronJob and 11 characters. */
const CRON_JOB_NAME_MAX = 52;
const CONCURRENCY_POLICIES = ['Allow', 'Forbid', 'Replace'];
const COMPLETION_MODES = ['Indexed', 'NonIndexed'];
const REPLACEMENT_POLICIES = ['Failed', 'TerminatingOrFailed'];

const JOB_COUNTS = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
  'ttlSecondsAfterFinished',
] as const;

/** Fields that no controller acts on here: they are refused, because a Job would not do what its author expects. */
const UNSUPPORTED = ['backoffLimitPerIndex', 'maxFailedIndexes', 'successPolicy'] as const;

const POLICY_ACTIONS = ['Count', 'FailIndex', 'FailJob', 'Ignore'];

/** pkg/apis/batch/validation/validation.go (validatePodFailurePolicy). */
function validateFailurePolicy({ podFailurePolicy, podReplacementPolicy, template }: JobSpec, field: string): Cause[] {
  if (podFailurePolicy === undefined) return [];
  const { restartPolicy } = template?.spec ?? {};
  const causes = (podFailurePolicy.rules ?? []).flatMap((rule, index) =>
    validateFailureRule(rule, `${field}.podFailurePolicy.rules[${index}]`),
  );
  if (restartPolicy !== 'Never') {
    const why = 'only "Never" is supported when podFailurePolicy is specified';
    causes.push(invalidValue(`${field}.template.spec.restartPolicy`, restartPolicy, why));
  }
  if (podReplacementPolicy !== undefined && podReplacementPolicy !== 'Failed') {
    causes.push(notSupported(`${field}.podReplacementPolicy`, podReplacementPolicy, ['Failed']));
  }
  return causes;
}

function validateFailureRule({ action = '', onExitCodes, onPodConditions }: PodFailureRule, field: string): Cause[] {
  const causes: Cause[] = [];
  if (action === '') causes.push(required(`${field}.action`, `valid values: ${JSON.stringify(POLICY_ACTIONS)}`));
  else if (!POLICY_ACTIONS.includes(action)) causes.push(notSupported(`${field}.action`, action, POLICY_ACTIONS));
  else if (action === 'FailIndex') {
    causes.push(invalidValue(`${field}.action`, action, 'requires the backoffLimitPerIndex to be set'));
  }
  if (onExitCodes !== undefined) causes.push(...validateExitCodes(onExitCodes, `${field}.onExitCodes`));
  const hasConditions = (onPodConditions ?? []).length > 0;
  if (onExitCodes !== undefined && hasConditions) {
    causes.push(invalidValue(field, {}, 'specifying both OnExitCodes and OnPodConditions is not supported'));
  }
  if (onExitCodes === undefined && !hasConditions) {
    causes.push(invalidValue(field, {}, 'specifying one of OnExitCodes and OnPodConditions is required'));
  }
  return causes;
}

function validateExitCodes({ operator = '', values = [] }: ExitCodesRequirement, field: string): Cause[] {
  const causes: Cause[] = [];
  if (operator !== 'In' && operator !== 'NotIn') {
    causes.push(notSupported(`${field}.operator`, operator, ['In', 'NotIn']));
  }
  if (values.length === 0) causes.push(invalidValue(`${field}.values`, values, 'at least one value is required'));
  if (operator === 'In' && values.includes(0)) {
    causes.push(invalidValue(`${field}.values[${values.indexOf(0)}]`, 0, 'must not be 0 for the In operator'));
  }
  return causes;
}

/** @param field path of the spec */
function validateJobSpec(spec: JobSpec, field: string): Cause[] {
  const causes = JOB_COUNTS.flatMap((name) => nonNegative(`${field}.${name}`, spec[name]));
  const { completionMode: mode, podReplacementPolicy: replacement } = spec;
  if (mode !== undefined && !COMPLETION_MODES.includes(mode)) {
    causes.push(notSupported(`${field}.completionMode`, mode, COMPLETION_MODES));
  }
  if (mode === 'Indexed' && spec.completions === undefined) {
    causes.push(required(`${field}.completions`, 'when completion mode is Indexed'));
  }
  if (mode === 'Indexed' && spec.parallelism !== undefined && spec.parallelism > INDEXED_PARALLELISM_MAX) {
    const why = `must be less than or equal to ${INDEXED_PARALLELISM_MAX} when completion mode is Indexed`;
    causes.push(invalidValue(`${field}.parallelism`, spec.parallelism, why));
  }
  if (replacement !== undefined && !REPLACEMENT_POLICIES.includes(replacement)) {
    causes.push(notSupported(`${field}.podReplacementPolicy`, replacement, REPLACEMENT_POLICIES));
  }
  for (const name of UNSUPPORTED) {
    if (spec[name] !== undefined) causes.push(forbiddenField(`${field}.${name}`, 'not supported by this cluster'));
  }
  causes.push(...validateFailurePolicy(spec, field));
  causes.push(...validateTemplate(spec.template, `${field}.template`));
  const { restartPolicy = '' } = spec.template?.spec ?? {};
  if (restartPolicy === '' || restartPolicy === 'Always') {
    causes.push(required(`${field}.template.spec.restartPolicy`, 'valid values: "OnFailure", "Never"'));
  } else if (restartPolicy !== 'OnFailure' && restartPolicy !== 'Never') {
    causes.push(notSupported(`${field}.template.spec.restartPolicy`, restartPolicy, ['OnFailure', 'Never']));
  }
  return causes;
}

export function validateJob(job: KubeJob, old: KubeJob | undefined, subresource: string): Cause[] {
  const metadata = validateObjectMetadata(job, old, RULES);
  if (subresource === 'status') {
    const counts = (['active', 'succeeded', 'failed'] as const).flatMap((name) =>
      nonNegative(`status.${name}`, job.status?.[name]),
    );
    return [...metadata, ...counts];
  }
  const spec = job.spec ?? {};
  const causes = [...metadata, ...validateJobSpec(spec, 'spec')];
  if (spec.selector === undefined) causes.push(required('spec.selector'));
  if (old === undefined) return causes;
  const before = old.spec ?? {};
  const isElastic = spec.completionMode === 'Indexed' && spec.completions === spec.parallelism;
  return [
    ...causes,
    ...(isElastic ? [] : immutable('spec.completions', spec.completions, before.completions)),
    ...immutable('spec.selector', spec.selector, before.selector),
    ...(before.suspend === true ? [] : immutable('spec.template', spec.template, before.template)),
    ...immutable('spec.completionMode', spec.completionMode, before.completionMode),
    ...immutable('spec.podFailurePolicy', spec.podFailurePolicy, before.podFailurePolicy),
    ...immutable('spec.managedBy', spec.managedBy, before.managedBy),
  ];
}

function validateSchedule(schedule: string, timeZone: string | undefined, old: CronJobSpec | undefined): Cause[] {
  const field = 'spec.schedule';
  if (schedule === '') return [required(field)];
  const causes: Cause[] = [];
  const invalid = (why: string) => invalidValue(field, schedule, why);
  try {
    parseCron(schedule);
  } catch (fault) {
    if (!(fault instanceof CronError)) throw fault;
    causes.push(invalid(fault.message));
  }
  const hasZone = schedule.includes('TZ');
  // A schedule that was stored by an earlier release stays valid.
  const isOld = old?.schedule?.includes('TZ') === true;
  if (hasZone && timeZone !== undefined) {
    causes.push(invalid('cannot use both timeZone field and TZ or CRON_TZ in schedule'));
  } else if (hasZone && !isOld) {
    causes.push(invalid('cannot use TZ or CRON_TZ in schedule, use timeZone field instead'));
  }
  return causes;
}

function validateTimeZone(name: string | undefined): Cause[] {
  if (name === undefined) return [];
  const field = 'spec.timeZone';
  if (name === '') return [invalidValue(field, name, 'timeZone must be nil or non-empty string')];
  if (name.toLowerCase() === 'local') {
    const why = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
    return [invalidValue(field, name, why)];
  }
  return isTimeZone(name) ? [] : [invalidValue(field, name, `unknown time zone ${name}`)];
}

/** Each Job of a CronJob has the selector of its own uid. */
function validateJobTemplate(spec: JobSpec): Cause[] {
  const field = 'spec.jobTemplate.spec';
  const causes = validateJobSpec(spec, field);
  if (spec.selector !== undefined) {
    causes.push(invalidValue(`${field}.selector`, spec.selector, '`selector` will be auto-generated'));
  }
  if (spec.manualSelector === true) causes.push(notSupported(`${field}.manualSelector`, true, ['nil', 'false']));
  return causes;
}

function validateCronJobSpec(spec: CronJobSpec, old: CronJobSpec | undefined): Cause[] {
  const causes = [
    ...validateSchedule(spec.schedule ?? '', spec.timeZone, old),
    ...(spec.timeZone === old?.timeZone && old !== undefined ? [] : validateTimeZone(spec.timeZone)),
  ];
  const { concurrencyPolicy: policy = '' } = spec;
  if (policy === '') causes.push(required('spec.concurrencyPolicy'));
  else if (!CONCURRENCY_POLICIES.includes(policy)) {
    causes.push(notSupported('spec.concurrencyPolicy', policy, CONCURRENCY_POLICIES));
  }
  return [
    ...causes,
    ...nonNegative('spec.startingDeadlineSeconds', spec.startingDeadlineSeconds),
    ...validateJobTemplate(spec.jobTemplate?.spec ?? {}),
    ...nonNegative('spec.successfulJobsHistoryLimit', spec.successfulJobsHistoryLimit),
    ...nonNegative('spec.failedJobsHistoryLimit', spec.failedJobsHistoryLimit),
  ];
}

export function validateCronJob(cronJob: KubeCronJob, old: KubeCronJob | undefined, subresource: string): Cause[] {
  const causes = validateObjectMetadata(cronJob, old, RULES);
  if (subresource === 'status') return causes;
  causes.push(...validateCronJobSpec(cronJob.spec ?? {}, old?.spec));
  const { name = '' } = cronJob.metadata;
  if (name.length > CRON_JOB_NAME_MAX && old === undefined) {
    causes.push(invalidValue('metadata.name', name, tooLongText(CRON_JOB_NAME_MAX)));
  }
  return causes;
}
