/** Job and CronJob (pkg/apis/batch/validation/validation.go). */

import {
  duplicate,
  IMMUTABLE,
  immutable,
  invalidValue,
  invalidWhole,
  nonNegative,
  notSupported,
  oneOf,
  required,
  requiredOneOf,
  sameJson,
  tooLong,
  tooMany,
} from '../../kubernetes/causes.ts';
import { selectorFromSpec, validateSelector } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { CONDITION_STATUSES } from '../../kubernetes/validate-conditions.ts';
import {
  byteLength,
  domainPathErrors,
  labelErrors,
  qualifiedNameErrors,
  subdomainName,
  tooLongText,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import type {
  CronJobSpec,
  JobSpec,
  KubeCronJob,
  KubeJob,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyRule,
  PodTemplateSpec,
  SuccessPolicyRule,
} from '../types.ts';
import { validateSelection, validateTemplate } from '../validate-workloads.ts';
import { CronError, isExactTimeZone, parseCron } from './cron-schedule.ts';
import { generatedLabels } from './defaults.ts';
import { checkIndexes, validateJobStatus } from './validate-status.ts';

const RULES = { namespaced: true, name: subdomainName };

/** Bounds the length of status.completedIndexes. Pods. */
const INDEXED_PARALLELISM_MAX = 100_000;
/** Likewise of status.failedIndexes. */
const FAILED_INDEXES_MAX = 100_000;
/** Beyond as many completions the others are smaller. */
const COMPLETIONS_SOFT_MAX = 100_000;
const SMALL_MAX = 10_000;
/** The name of a Job has the name of its CronJob and 11 characters. */
const CRON_JOB_NAME_MAX = 52;
const CONCURRENCY_POLICIES = ['Allow', 'Forbid', 'Replace'];
const COMPLETION_MODES = ['NonIndexed', 'Indexed'];
const REPLACEMENT_POLICIES = ['Failed', 'TerminatingOrFailed'];
const RESTART_POLICIES = ['OnFailure', 'Never'];
const MANAGED_BY_BYTES_MAX = 63;
const FIXED = ['completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy'] as const;

const JOB_COUNTS = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
  'ttlSecondsAfterFinished',
] as const;

const POLICY_ACTIONS = ['Count', 'FailIndex', 'FailJob', 'Ignore'];

const RULES_MAX = 20;
const PATTERNS_MAX = 20;
const EXIT_CODES_MAX = 255;
const SUCCESS_INDEXES_BYTES_MAX = 65_536;

/** Upstream prints a list of texts without commas. */
const validValues = (values: readonly string[]): string =>
  `valid values: [${values.map((each) => JSON.stringify(each)).join(' ')}]`;

const policyValue = (field: string, value: string | undefined, values: readonly string[]): Cause[] =>
  oneOf(field, value, values, required(field, validValues(values)));

const limited = (field: string, items: readonly unknown[], max: number): Cause[] =>
  items.length > max ? [tooMany(field, items.length, max)] : [];

function validateFailurePolicy({ podFailurePolicy, template, backoffLimitPerIndex }: JobSpec, field: string): Cause[] {
  if (podFailurePolicy === undefined) return [];
  const { containers = [], initContainers = [] } = template?.spec ?? {};
  const names = new Set([...containers, ...initContainers].map(({ name }) => name));
  const { rules = [] } = podFailurePolicy;
  return [
    ...limited(`${field}.rules`, rules, RULES_MAX),
    ...rules.flatMap((rule, index) => {
      const path = `${field}.rules[${index}]`;
      const why = 'requires the backoffLimitPerIndex to be set';
      return [
        ...(rule.action === 'FailIndex' && backoffLimitPerIndex === undefined
          ? [invalidValue(`${path}.action`, rule.action, why)]
          : []),
        ...validateFailureRule(rule, path, names),
      ];
    }),
  ];
}

type ContainerNames = ReadonlySet<string | undefined>;

function validateFailureRule(rule: PodFailurePolicyRule, field: string, names: ContainerNames): Cause[] {
  const { action, onExitCodes, onPodConditions = [] } = rule;
  const causes = policyValue(`${field}.action`, action, POLICY_ACTIONS);
  if (onExitCodes !== undefined) causes.push(...validateExitCodes(onExitCodes, `${field}.onExitCodes`, names));
  const path = `${field}.onPodConditions`;
  causes.push(...limited(path, onPodConditions, PATTERNS_MAX));
  for (const [index, { type = '', status }] of onPodConditions.entries()) {
    const errors = qualifiedNameErrors(type);
    causes.push(...errors.map((error) => invalidValue(`${path}[${index}].type`, type, error)));
    causes.push(...oneOf(`${path}[${index}].status`, status, CONDITION_STATUSES));
  }
  const hasConditions = onPodConditions.length > 0;
  if (onExitCodes !== undefined && hasConditions) {
    causes.push(invalidWhole(field, 'specifying both OnExitCodes and OnPodConditions is not supported'));
  }
  if (onExitCodes === undefined && !hasConditions) {
    causes.push(invalidWhole(field, 'specifying one of OnExitCodes and OnPodConditions is required'));
  }
  return causes;
}

function validateExitCodes(
  { operator, containerName, values = [] }: PodFailurePolicyOnExitCodesRequirement,
  field: string,
  names: ContainerNames,
): Cause[] {
  const causes = policyValue(`${field}.operator`, operator, ['In', 'NotIn']);
  if (containerName !== undefined && !names.has(containerName)) {
    const why = 'must be one of the container or initContainer names in the pod template';
    causes.push(invalidValue(`${field}.containerName`, containerName, why));
  }
  if (values.length === 0) causes.push(invalidValue(`${field}.values`, values, 'at least one value is required'));
  causes.push(...limited(`${field}.values`, values, EXIT_CODES_MAX));
  const seen = new Set<number>();
  for (const [index, value] of values.entries()) {
    const path = `${field}.values[${index}]`;
    if (operator === 'In' && value === 0) causes.push(invalidValue(path, 0, 'must not be 0 for the In operator'));
    if (seen.has(value)) causes.push(duplicate(path, value));
    seen.add(value);
  }
  if (values.some((value, index) => index > 0 && values[index - 1]! > value)) {
    causes.push(invalidValue(`${field}.values`, values, 'must be ordered'));
  }
  return causes;
}

function validateManager(name: string | undefined, field: string): Cause[] {
  if (name === undefined) return [];
  if (name === '') return [required(field)];
  const causes = domainPathErrors(name).map((error) => invalidValue(field, name, error));
  return byteLength(name) > MANAGED_BY_BYTES_MAX ? [...causes, tooLong(field, MANAGED_BY_BYTES_MAX)] : causes;
}

const NOT_INDEXED = 'requires indexed completion mode';

function validatePerIndex(spec: JobSpec, field: string): Cause[] {
  const { completions = 0, parallelism = 0, backoffLimitPerIndex: limit, maxFailedIndexes: max } = spec;
  const maxField = `${field}.maxFailedIndexes`;
  const causes: Cause[] = [];
  const bounded = (name: string, value: number, valueMax: number, more = ''): void => {
    const why = `must be less than or equal to ${valueMax}${more}`;
    if (value > valueMax) causes.push(invalidValue(`${field}.${name}`, value, why));
  };
  if (max !== undefined && limit === undefined) {
    causes.push(required(`${field}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified'));
  }
  if ((spec.completionMode ?? 'NonIndexed') === 'NonIndexed') {
    for (const name of ['backoffLimitPerIndex', 'maxFailedIndexes'] as const) {
      if (spec[name] !== undefined) causes.push(invalidValue(`${field}.${name}`, spec[name], NOT_INDEXED));
    }
  }
  if (spec.completionMode !== 'Indexed') return causes;
  bounded('parallelism', parallelism, INDEXED_PARALLELISM_MAX, ' when completion mode is Indexed');
  if (max !== undefined && spec.completions !== undefined && max > completions) {
    causes.push(invalidValue(maxField, max, 'must be less than or equal to completions'));
  }
  bounded('maxFailedIndexes', max ?? 0, FAILED_INDEXES_MAX);
  if (completions <= COMPLETIONS_SOFT_MAX || limit === undefined) return causes;
  if (max === undefined) {
    causes.push(required(maxField, `must be specified when completions is above ${COMPLETIONS_SOFT_MAX}`));
  }
  const more = ` when completions are above ${COMPLETIONS_SOFT_MAX} and used with backoff limit per index`;
  bounded('parallelism', parallelism, SMALL_MAX, more);
  bounded('maxFailedIndexes', max ?? 0, SMALL_MAX, more);
  return causes;
}

function validateSuccessPolicy({ successPolicy, completionMode, completions = 0 }: JobSpec, field: string): Cause[] {
  if (successPolicy === undefined) return [];
  if (completionMode !== 'Indexed') return [invalidValue(field, successPolicy, NOT_INDEXED)];
  const { rules = [] } = successPolicy;
  const path = `${field}.rules`;
  const none = 'at least one rules must be specified when the successPolicy is specified';
  return [
    ...(rules.length === 0 ? [required(path, none)] : limited(path, rules, RULES_MAX)),
    ...rules.flatMap((rule, index) => validateSuccessRule(rule, `${path}[${index}]`, completions)),
  ];
}

function validateSuccessRule(
  { succeededIndexes: indexes, succeededCount: count }: SuccessPolicyRule,
  field: string,
  completions: number,
): Cause[] {
  const countField = `${field}.succeededCount`;
  const causes: Cause[] = [];
  const bounded = (countMax: number, of: string): void => {
    const why = `must be less than or equal to ${countMax} (the number of ${of})`;
    if (count !== undefined && count > countMax) causes.push(invalidValue(countField, count, why));
  };
  if (indexes === undefined && count === undefined) {
    causes.push(required(field, 'at least one of succeededCount or succeededIndexes must be specified'));
  }
  const checked = checkIndexes(indexes ?? '', completions);
  if (byteLength(indexes ?? '') > SUCCESS_INDEXES_BYTES_MAX) {
    causes.push(tooLong(`${field}.succeededIndexes`, SUCCESS_INDEXES_BYTES_MAX));
  }
  if (typeof checked === 'string') {
    causes.push(invalidValue(`${field}.succeededIndexes`, indexes, `error parsing succeededIndexes: ${checked}`));
  }
  causes.push(...nonNegative(countField, count));
  bounded(completions, 'specified completions');
  if (indexes !== undefined) {
    bounded(typeof checked === 'string' ? 0 : checked, 'indexes in the specified succeededIndexes field');
  }
  return causes;
}

/** @param field path of the spec */
function validateJobSpec(spec: JobSpec, field: string): Cause[] {
  const { completionMode: mode, podReplacementPolicy: replacement, podFailurePolicy: policy } = spec;
  const { restartPolicy = '' } = spec.template?.spec ?? {};
  const causes = [
    ...JOB_COUNTS.flatMap((name) => nonNegative(`${field}.${name}`, spec[name])),
    ...validateManager(spec.managedBy, `${field}.managedBy`),
    ...oneOf(`${field}.completionMode`, mode, COMPLETION_MODES),
  ];
  if (mode === 'Indexed' && spec.completions === undefined) {
    causes.push(required(`${field}.completions`, 'when completion mode is Indexed'));
  }
  const restartField = `${field}.template.spec.restartPolicy`;
  causes.push(
    ...validatePerIndex(spec, field),
    ...validateFailurePolicy(spec, `${field}.podFailurePolicy`),
    ...validateSuccessPolicy(spec, `${field}.successPolicy`),
    ...oneOf(`${field}.podReplacementPolicy`, replacement, policy === undefined ? REPLACEMENT_POLICIES : ['Failed']),
    ...validateTemplate(spec.template, `${field}.template`),
    ...oneOf(
      restartField,
      restartPolicy === 'Always' ? '' : restartPolicy,
      RESTART_POLICIES,
      required(restartField, 'valid values: "OnFailure", "Never"'),
    ),
  );
  if (policy !== undefined && restartPolicy === 'OnFailure') {
    const why = 'only "Never" is supported when podFailurePolicy is specified';
    causes.push(invalidValue(restartField, restartPolicy, why));
  }
  return causes;
}

/** The labels and the selector may be set by the client, but not to something else. */
function validateGenerated({ metadata, spec = {} }: KubeJob): Cause[] {
  if (spec.manualSelector === true || spec.selector === undefined) return [];
  const expected = generatedLabels(metadata);
  const labels = spec.template?.metadata?.labels ?? {};
  const causes = Object.entries(expected)
    .filter(([key, value]) => labels[key] !== value)
    .map(([key, value]) => invalidValue(`spec.template.metadata.labels[${key}]`, labels, `must be '${value}'`));
  return validateSelector(spec.selector, '').length > 0 || selectorFromSpec(spec.selector).matches(expected)
    ? causes
    : [...causes, invalidValue('spec.selector', spec.selector, '`selector` not auto-generated')];
}

/** The name of a pod of an Indexed Job is its host name. */
function validateHostName({ metadata: { name = '' }, spec = {} }: KubeJob): Cause[] {
  if (spec.completionMode !== 'Indexed' || (spec.completions ?? 0) <= 0) return [];
  const longest = `${name}-${spec.completions! - 1}`;
  return labelErrors(longest).length === 0
    ? []
    : [invalidValue('metadata.name', name, `will not able to create pod with invalid DNS label: ${longest}`)];
}

/** Where the pods of a Job that never started may run can still be changed. */
function withoutScheduling({ metadata, spec, ...template }: PodTemplateSpec = {}): object {
  const { labels: _labels, annotations: _annotations, ...meta } = metadata ?? {};
  const { affinity, nodeSelector: _selector, tolerations: _tolerations, ...rest } = spec ?? {};
  const { nodeAffinity: _nodes, ...fixedAffinity } = affinity ?? {};
  const { schedulingGates: _gates, ...fixed } = rest as typeof rest & { schedulingGates?: unknown };
  return { ...template, metadata: meta, spec: { ...fixed, affinity: fixedAffinity } };
}

function validateTemplateUpdate({ spec = {} }: KubeJob, { spec: before = {}, status }: KubeJob): Cause[] {
  const isNew = before.suspend === true && status?.startTime === undefined;
  const fixed = isNew ? withoutScheduling : (template: PodTemplateSpec = {}): object => template;
  return sameJson(fixed(spec.template), fixed(before.template))
    ? []
    : [invalidValue('spec.template', spec.template, IMMUTABLE)];
}

function validateCompletions({ completionMode, completions, parallelism }: JobSpec, before: JobSpec): Cause[] {
  const field = 'spec.completions';
  if (completionMode !== 'Indexed') return immutable(field, completions, before.completions);
  return completions === before.completions || completions === undefined || completions === parallelism
    ? []
    : [invalidValue(field, completions, 'can only be modified in tandem with spec.parallelism')];
}

export function validateJob(job: KubeJob, old: KubeJob | undefined, subresource: string): Cause[] {
  const metadata = validateObjectMetadata(job, old, RULES);
  if (old !== undefined && subresource === 'status') return [...metadata, ...validateJobStatus(job, old)];
  const { spec = {} } = job;
  const causes = [
    ...metadata,
    ...(old === undefined ? validateGenerated(job) : []),
    ...validateJobSpec(spec, 'spec'),
    ...validateSelection(spec, { isRequired: true }),
  ];
  if (old === undefined) return [...causes, ...validateHostName(job)];
  const { spec: before = {} } = old;
  return [
    ...causes,
    ...validateCompletions(spec, before),
    ...immutable('spec.selector', spec.selector, before.selector),
    ...validateTemplateUpdate(job, old),
    ...FIXED.flatMap((name) => immutable(`spec.${name}`, spec[name], before[name])),
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
  if (schedule.includes('TZ')) {
    // A schedule that was stored with a zone stays valid.
    if (old?.schedule?.includes('TZ') !== true) {
      causes.push(invalid('cannot use TZ or CRON_TZ in schedule, use timeZone field instead'));
    } else if (timeZone !== undefined) {
      causes.push(invalid('cannot use both timeZone field and TZ or CRON_TZ in schedule'));
    }
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
  return isExactTimeZone(name) ? [] : [invalidValue(field, name, `unknown time zone ${name}`)];
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
  return [
    ...causes,
    ...requiredOneOf('spec.concurrencyPolicy', spec.concurrencyPolicy, CONCURRENCY_POLICIES),
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
