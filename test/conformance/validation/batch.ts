/** Constraints of Jobs and CronJobs (pkg/apis/batch/validation, pkg/registry/batch/job/strategy.go). */
import {
  at,
  type Constraint,
  duplicate,
  type Edits,
  type ExpectedCause,
  IMMUTABLE,
  invalid,
  leftOut,
  NOT_NEGATIVE,
  nonNegative,
  on,
  onStatus,
  onUpdate,
  required,
  tooLong,
  tooMany,
  unsupported,
  within,
} from './constraint.ts';
import { labelSelector } from './workloads.ts';

const RULE = 'spec.podFailurePolicy.rules[0]';
const CODES = `${RULE}.onExitCodes`;
const CONDITIONS = `${RULE}.onPodConditions`;
const exitCodes = { operator: 'In', values: [1] };
const onExit = { action: 'FailJob', onExitCodes: exitCodes };
const pattern = { type: 'DisruptionTarget', status: 'True' };
const indexed = { 'spec.completionMode': 'Indexed', 'spec.completions': 3, 'spec.parallelism': 3 };

const rule = (field: string, what: string, edits: Edits, cause: ExpectedCause): Constraint =>
  on(field, what, { [RULE]: onExit, ...edits }, cause);
const codes = (field: string, what: string, value: unknown, cause: ExpectedCause): Constraint =>
  rule(`${CODES}.${field}`, what, { [`${CODES}.${field}`]: value }, cause);
const condition = (field: string, what: string, value: unknown, cause: ExpectedCause): Constraint =>
  on(
    `${CONDITIONS}[0].${field}`,
    what,
    { [RULE]: { action: 'Ignore', onPodConditions: [pattern] }, [`${CONDITIONS}[0].${field}`]: value },
    cause,
  );

const failurePolicy: Constraint[] = [
  on(
    'spec.podFailurePolicy.rules',
    'at most 20',
    { 'spec.podFailurePolicy.rules': Array.from({ length: 21 }, () => onExit) },
    tooMany('must have at most 20 items'),
  ),
  rule(
    `${RULE}.action`,
    'set',
    { [`${RULE}.action`]: '' },
    required('valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'),
  ),
  rule(
    `${RULE}.action`,
    'a known one',
    { [`${RULE}.action`]: 'Stop' },
    unsupported('supported values: "Count", "FailIndex", "FailJob", "Ignore"'),
  ),
  rule(
    `${RULE}.action`,
    'FailIndex only with backoffLimitPerIndex',
    { [`${RULE}.action`]: 'FailIndex' },
    invalid('requires the backoffLimitPerIndex to be set'),
  ),
  rule(
    RULE,
    'not both requirements',
    { [CONDITIONS]: [pattern] },
    invalid('Invalid value: specifying both OnExitCodes and OnPodConditions is not supported'),
  ),
  rule(
    RULE,
    'one requirement',
    { [CODES]: undefined },
    invalid('Invalid value: specifying one of OnExitCodes and OnPodConditions is required'),
  ),
  codes('operator', 'set', '', required('valid values: ["In" "NotIn"]')),
  codes('operator', 'In or NotIn', 'Like', unsupported('supported values: "In", "NotIn"')),
  codes(
    'containerName',
    'a container of the template',
    'other',
    invalid('must be one of the container or initContainer names in the pod template'),
  ),
  codes('values', 'at least one', [], invalid('at least one value is required')),
  codes(
    'values',
    'at most 255',
    Array.from({ length: 256 }, (_, index) => index + 1),
    tooMany('must have at most 255 items'),
  ),
  rule(`${CODES}.values[1]`, 'unique', { [`${CODES}.values`]: [1, 1] }, duplicate()),
  rule(
    `${CODES}.values[0]`,
    'not 0 with In',
    { [`${CODES}.values`]: [0] },
    invalid('must not be 0 for the In operator'),
  ),
  codes('values', 'in ascending order', [2, 1], invalid('must be ordered')),
  on(
    CONDITIONS,
    'at most 20',
    { [RULE]: { action: 'Ignore', onPodConditions: Array.from({ length: 21 }, () => pattern) } },
    tooMany('must have at most 20 items'),
  ),
  condition('type', 'a qualified name', 'a b', invalid()),
  leftOut(`${CONDITIONS}[0].status`, 'set', 'it is set to True'),
  condition('status', 'False, True or Unknown', 'Yes', unsupported('supported values: "False", "True", "Unknown"')),
];

const soft = (more: Edits): Edits => ({
  ...indexed,
  'spec.completions': 100_001,
  'spec.backoffLimitPerIndex': 1,
  ...more,
});
const ABOVE = ' when completions are above 100000 and used with backoff limit per index';

const perIndex: Constraint[] = [
  on(
    'spec.backoffLimitPerIndex',
    'set with maxFailedIndexes',
    { ...indexed, 'spec.maxFailedIndexes': 1 },
    required('when maxFailedIndexes is specified'),
  ),
  on(
    'spec.backoffLimitPerIndex',
    'only for Indexed',
    { 'spec.backoffLimitPerIndex': 1 },
    invalid('requires indexed completion mode'),
  ),
  on(
    'spec.maxFailedIndexes',
    'only for Indexed',
    { 'spec.backoffLimitPerIndex': undefined, 'spec.maxFailedIndexes': 1 },
    invalid('requires indexed completion mode'),
  ),
  on(
    'spec.maxFailedIndexes',
    'at most completions',
    { ...indexed, 'spec.backoffLimitPerIndex': 1, 'spec.maxFailedIndexes': 4 },
    invalid('must be less than or equal to completions'),
  ),
  on(
    'spec.maxFailedIndexes',
    'at most 100,000',
    soft({ 'spec.maxFailedIndexes': 100_001 }),
    invalid('must be less than or equal to 100000'),
  ),
  on(
    'spec.maxFailedIndexes',
    'set with more than 100,000 completions',
    soft({}),
    required('must be specified when completions is above 100000'),
  ),
  on(
    'spec.maxFailedIndexes',
    'at most 10,000 with more than 100,000 completions',
    soft({ 'spec.maxFailedIndexes': 10_001 }),
    invalid(`must be less than or equal to 10000${ABOVE}`),
  ),
  on(
    'spec.parallelism',
    'at most 10,000 with backoffLimitPerIndex and more than 100,000 completions',
    soft({ 'spec.maxFailedIndexes': 1, 'spec.parallelism': 10_001 }),
    invalid(`must be less than or equal to 10000${ABOVE}`),
  ),
];

const SUCCESS = 'spec.successPolicy.rules';
const success = (field: string, what: string, value: object, cause: ExpectedCause): Constraint =>
  on(`${SUCCESS}[0]${field}`, what, { ...indexed, [SUCCESS]: [value] }, cause);

const successPolicy: Constraint[] = [
  on(
    'spec.successPolicy',
    'only for Indexed',
    { 'spec.successPolicy': { rules: [{ succeededCount: 1 }] } },
    invalid('requires indexed completion mode'),
  ),
  on(
    SUCCESS,
    'at least one',
    { ...indexed, [SUCCESS]: [] },
    required('at least one rules must be specified when the successPolicy is specified'),
  ),
  on(
    SUCCESS,
    'at most 20',
    { ...indexed, [SUCCESS]: Array.from({ length: 21 }, () => ({ succeededCount: 1 })) },
    tooMany('must have at most 20 items'),
  ),
  success('', 'not empty', {}, required('at least one of succeededCount or succeededIndexes must be specified')),
  success(
    '.succeededIndexes',
    'at most 65,536 bytes',
    { succeededIndexes: '0'.repeat(65_537) },
    tooLong('may not be more than 65536 bytes'),
  ),
  success(
    '.succeededIndexes',
    'indexes less than completions',
    { succeededIndexes: '0,2-3' },
    invalid('error parsing succeededIndexes: too large index: "3"'),
  ),
  success('.succeededCount', 'at least 0', { succeededCount: -1 }, invalid(NOT_NEGATIVE)),
  success(
    '.succeededCount',
    'at most completions',
    { succeededCount: 4 },
    invalid('must be less than or equal to 3 (the number of specified completions)'),
  ),
  success(
    '.succeededCount',
    'at most the succeededIndexes',
    { succeededIndexes: '0-1', succeededCount: 3 },
    invalid('must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)'),
  ),
];

/** The constraints also hold for the template of a CronJob. */
const jobSpec: Constraint[] = [
  ...nonNegative(
    'spec.parallelism',
    'spec.completions',
    'spec.activeDeadlineSeconds',
    'spec.backoffLimit',
    'spec.ttlSecondsAfterFinished',
    'spec.backoffLimitPerIndex',
    'spec.maxFailedIndexes',
  ),
  at('spec.managedBy', 'not empty', '', required()),
  at('spec.managedBy', 'domain and path', 'me', invalid('must be a domain-prefixed path (such as "acme.io/foo")')),
  at('spec.managedBy', 'the domain is a DNS subdomain', 'a_b/c', invalid()),
  at(
    'spec.managedBy',
    'characters of a path',
    'example.com/a b',
    invalid("Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"),
  ),
  at('spec.managedBy', 'at most 63 bytes', `example.com/${'a'.repeat(52)}`, tooLong('may not be more than 63 bytes')),
  at('spec.completionMode', 'NonIndexed or Indexed', 'Other', unsupported('supported values: "NonIndexed", "Indexed"')),
  on(
    'spec.completions',
    'set for Indexed',
    { 'spec.completionMode': 'Indexed', 'spec.parallelism': 1 },
    required('when completion mode is Indexed'),
  ),
  on(
    'spec.parallelism',
    'at most 100,000 for Indexed',
    { 'spec.completionMode': 'Indexed', 'spec.completions': 1, 'spec.parallelism': 100_001 },
    invalid('must be less than or equal to 100000 when completion mode is Indexed'),
  ),
  ...perIndex,
  ...successPolicy,
  ...failurePolicy,
  at(
    'spec.podReplacementPolicy',
    'Failed or TerminatingOrFailed',
    'Other',
    unsupported('supported values: "Failed", "TerminatingOrFailed"'),
  ),
  on(
    'spec.podReplacementPolicy',
    'Failed with podFailurePolicy',
    { [RULE]: onExit, 'spec.podReplacementPolicy': 'TerminatingOrFailed' },
    unsupported('supported values: "Failed"'),
  ),
  at('spec.template.spec.restartPolicy', 'not Always', 'Always', required('valid values: "OnFailure", "Never"')),
  at(
    'spec.template.spec.restartPolicy',
    'OnFailure or Never',
    'Other',
    unsupported('supported values: "OnFailure", "Never"'),
  ),
  on(
    'spec.template.spec.restartPolicy',
    'Never with podFailurePolicy',
    { [RULE]: onExit, 'spec.template.spec.restartPolicy': 'OnFailure' },
    invalid('only "Never" is supported when podFailurePolicy is specified'),
  ),
];

/** Wrong texts of indexes, with one completion. */
const FORMS = [
  [
    'two parts of an interval',
    '0-1-2',
    `the fragment "0-1-2" violates the requirement that an index interval can have at most two parts separated by '-'`,
  ],
  ['integers', 'a', 'cannot convert string to integer for index: "a"'],
  ['less than completions', '1', 'too large index: "1"'],
  ['in ascending order', '0,0', 'non-increasing order, previous: 0, current: 0'],
  ['intervals of more than one', '0-0', 'non-increasing order, previous: 0, current: 0'],
] as const;
const PER_INDEX = { ...indexed, 'spec.completions': 1, 'spec.backoffLimitPerIndex': 1 };

const TIME = '2026-01-01T00:00:00Z';
const LATER = '2026-01-01T00:01:00Z';
const isTrue = (...types: string[]) => types.map((type) => ({ type, status: 'True' }));
const complete = {
  'status.conditions': isTrue('SuccessCriteriaMet', 'Complete'),
  'status.startTime': TIME,
  'status.completionTime': LATER,
};
const failed = { 'status.conditions': isTrue('FailureTarget', 'Failed'), 'status.startTime': TIME };

const conditions = (what: string, text: string, types: string[], before: Edits = {}): Constraint =>
  onStatus(
    'status.conditions',
    what,
    { 'status.conditions': isTrue(...types) },
    invalid(`Invalid value: ${text}`),
    before,
  );

const jobStatus: Constraint[] = [
  ...['active', 'succeeded', 'failed', 'ready', 'terminating'].map((name) =>
    onStatus(`status.${name}`, 'at least 0', { [`status.${name}`]: -1 }, invalid(NOT_NEGATIVE)),
  ),
  ...['succeeded', 'failed'].flatMap((name): Constraint[] => {
    const field = `status.uncountedTerminatedPods.${name}`;
    return [
      onStatus(`${field}[0]`, 'not empty', { [field]: [''] }, invalid('must not be empty')),
      onStatus(`${field}[1]`, 'unique', { [field]: ['a', 'a'] }, duplicate()),
    ];
  }),
  conditions('not Complete and Failed', 'cannot set Complete=True and Failed=true conditions', [
    'Complete',
    'SuccessCriteriaMet',
    'Failed',
    'FailureTarget',
  ]),
  conditions('not Complete and FailureTarget', 'cannot set Complete=True and FailureTarget=true conditions', [
    'Complete',
    'SuccessCriteriaMet',
    'FailureTarget',
  ]),
  conditions('not SuccessCriteriaMet and Failed', 'cannot set SuccessCriteriaMet=True and Failed=true conditions', [
    'SuccessCriteriaMet',
    'Failed',
    'FailureTarget',
  ]),
  conditions(
    'not SuccessCriteriaMet and FailureTarget',
    'cannot set SuccessCriteriaMet=True and FailureTarget=true conditions',
    ['SuccessCriteriaMet', 'FailureTarget'],
  ),
  conditions(
    'Failed after FailureTarget',
    'cannot set Failed=True condition without the FailureTarget=true condition',
    ['Failed'],
  ),
  conditions(
    'Complete after SuccessCriteriaMet',
    'cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
    ['Complete'],
  ),
  conditions('Failed stays', 'cannot disable the terminal Failed=True condition', ['FailureTarget'], failed),
  conditions('Complete stays', 'cannot disable the terminal Complete=True condition', ['SuccessCriteriaMet'], complete),
  conditions('FailureTarget stays', 'cannot disable the terminal FailureTarget=True condition', [], {
    'status.conditions': isTrue('FailureTarget'),
  }),
  conditions('SuccessCriteriaMet stays', 'cannot disable the SuccessCriteriaMet=True condition', [], {
    'status.conditions': isTrue('SuccessCriteriaMet'),
  }),
  leftOut(
    'status.conditions',
    'SuccessCriteriaMet is not added to a complete Job',
    'Complete is not accepted without SuccessCriteriaMet, so no such Job exists',
  ),
  onStatus(
    'status.conditions',
    'with successPolicy: Complete after SuccessCriteriaMet',
    { ...complete, 'status.conditions': isTrue('Complete') },
    invalid('Invalid value: cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True'),
    { ...indexed, [SUCCESS]: [{ succeededCount: 1 }] },
  ),
  onStatus(
    'status.completionTime',
    'only with Complete',
    { 'status.completionTime': TIME },
    invalid('cannot set completionTime when there is no Complete=True condition'),
  ),
  onStatus(
    'status.completionTime',
    'set with Complete',
    { ...complete, 'status.completionTime': undefined },
    required('completionTime is required for Complete jobs'),
  ),
  onStatus(
    'status.completionTime',
    'not before startTime',
    { ...complete, 'status.startTime': LATER, 'status.completionTime': TIME },
    invalid('must be equal to or after `startTime`'),
  ),
  onStatus('status.completionTime', 'immutable', { 'status.completionTime': TIME }, invalid(IMMUTABLE), complete),
  onStatus(
    'status.startTime',
    'set for a finished Job',
    { ...failed, 'status.startTime': undefined },
    required('startTime is required for finished job'),
  ),
  onStatus(
    'status.startTime',
    'changes only while suspended',
    { 'status.startTime': LATER },
    required('startTime cannot be removed for unsuspended job'),
    { 'status.startTime': TIME },
  ),
  ...['active', 'terminating'].map((name) =>
    onStatus(
      `status.${name}`,
      '0 for a finished Job',
      { ...failed, [`status.${name}`]: 1 },
      invalid(`${name}>0 is invalid for finished job`),
    ),
  ),
  onStatus(
    'status.uncountedTerminatedPods',
    'empty for a finished Job',
    { ...failed, 'status.uncountedTerminatedPods.failed': ['a'] },
    invalid('must be empty for finished job'),
  ),
  onStatus(
    'status.ready',
    'at most active',
    { 'status.ready': 2, 'status.active': 1 },
    invalid('cannot set more ready pods than active'),
  ),
  ...['failed', 'succeeded'].map((name) =>
    onStatus(
      `status.${name}`,
      'never decreased',
      { [`status.${name}`]: 1 },
      invalid(`cannot decrease the ${name} counter`),
      { [`status.${name}`]: 2 },
    ),
  ),
  onStatus(
    'status.completedIndexes',
    'only of an Indexed Job',
    { 'status.completedIndexes': '0' },
    invalid('cannot set non-empty completedIndexes when non-indexed completion mode'),
  ),
  ...FORMS.map(([what, text, fault]) =>
    onStatus(
      'status.completedIndexes',
      what,
      { 'status.completedIndexes': text },
      invalid(`error parsing completedIndexes: ${fault}`),
    ),
  ),
  ...FORMS.map(([what, text, fault]) =>
    onStatus(
      'status.failedIndexes',
      what,
      { 'status.failedIndexes': text },
      invalid(`error parsing failedIndexes: ${fault}`),
      PER_INDEX,
    ),
  ),
  onStatus(
    'status.failedIndexes',
    'apart from completedIndexes',
    { 'status.completedIndexes': '0,2', 'status.failedIndexes': '1-2' },
    invalid('failedIndexes and completedIndexes overlap at index: 2'),
    { ...PER_INDEX, 'spec.completions': 3 },
  ),
  onStatus(
    'status.failedIndexes',
    'only with backoffLimitPerIndex',
    { 'status.failedIndexes': '0' },
    invalid('cannot set non-null failedIndexes when backoffLimitPerIndex is null'),
  ),
];

const LABEL = 'spec.template.metadata.labels';

export const jobs: Constraint[] = [
  ...['batch.kubernetes.io/controller-uid', 'batch.kubernetes.io/job-name', 'controller-uid', 'job-name'].map((key) =>
    on(`${LABEL}[${key}]`, 'the generated value', { [LABEL]: { [key]: 'other' } }, invalid()),
  ),
  on(
    'spec.selector',
    'the generated one, unless manualSelector is true',
    { 'spec.selector': { matchLabels: { app: 'a' } } },
    invalid('`selector` not auto-generated'),
  ),
  on('spec.selector', 'set with manualSelector', { 'spec.manualSelector': true }, required()),
  on(
    'spec.template.metadata.labels',
    'match the selector',
    { 'spec.manualSelector': true, 'spec.selector': { matchLabels: { app: 'a' } } },
    invalid('`selector` does not match template `labels`'),
  ),
  ...labelSelector('spec.selector'),
  ...jobSpec,
  on(
    'metadata.name',
    'of an Indexed Job: the host name of its last pod is a DNS label',
    { ...indexed, 'metadata.name': 'a'.repeat(62) },
    invalid(`will not able to create pod with invalid DNS label: ${'a'.repeat(62)}-2`),
  ),
  onUpdate('spec.completions', 'immutable unless Indexed', { 'spec.completions': 5 }, invalid(IMMUTABLE)),
  onUpdate(
    'spec.completions',
    'Indexed: changes with parallelism',
    { 'spec.completions': 5 },
    invalid('can only be modified in tandem with spec.parallelism'),
    indexed,
  ),
  onUpdate('spec.selector', 'immutable', { 'spec.selector.matchLabels.app': 'a' }, invalid(IMMUTABLE)),
  onUpdate('spec.template', 'immutable', { 'spec.template.spec.nodeSelector': { a: 'b' } }, invalid(IMMUTABLE)),
  onUpdate(
    'spec.template',
    'immutable but for scheduling before a suspended Job starts',
    { 'spec.template.spec.containers[0].image': 'other' },
    invalid(IMMUTABLE),
    { 'spec.suspend': true },
  ),
  onUpdate(
    'spec.completionMode',
    'immutable',
    { 'spec.completionMode': 'Indexed', 'spec.completions': 1 },
    invalid(IMMUTABLE),
  ),
  onUpdate('spec.podFailurePolicy', 'immutable', { [RULE]: onExit }, invalid(IMMUTABLE)),
  onUpdate('spec.managedBy', 'immutable', { 'spec.managedBy': 'example.com/m' }, invalid(IMMUTABLE)),
  onUpdate('spec.backoffLimitPerIndex', 'immutable', { 'spec.backoffLimitPerIndex': 2 }, invalid(IMMUTABLE), PER_INDEX),
  onUpdate('spec.successPolicy', 'immutable', { [SUCCESS]: [{ succeededCount: 2 }] }, invalid(IMMUTABLE), {
    ...indexed,
    [SUCCESS]: [{ succeededCount: 1 }],
  }),
  ...jobStatus,
];

const zone = (what: string, value: string, text: string): Constraint => at('spec.timeZone', what, value, invalid(text));
const TZ_TEXT = 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead';
const template = (path: string): string => `spec.jobTemplate.${path}`;

export const cronJobs: Constraint[] = [
  at('spec.schedule', 'set', '', required()),
  at('spec.schedule', 'of the form of cron', 'often', invalid('expected exactly 5 fields, found 1: [often]')),
  at('spec.schedule', 'no time zone', 'TZ=UTC 0 0 * * *', invalid(TZ_TEXT)),
  leftOut(
    'spec.schedule',
    'no time zone in addition to timeZone',
    'only for schedules that were stored before this rule existed: there are none',
  ),
  zone('not empty', '', 'timeZone must be nil or non-empty string'),
  zone('a name of the IANA database', 'Mars/Olympus', 'unknown time zone Mars/Olympus'),
  zone('no path', '../UTC', 'unknown time zone ../UTC'),
  zone('explicit', 'Local', 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'),
  ...nonNegative('spec.startingDeadlineSeconds', 'spec.successfulJobsHistoryLimit', 'spec.failedJobsHistoryLimit'),
  leftOut('spec.concurrencyPolicy', 'set', 'it is set to Allow'),
  at(
    'spec.concurrencyPolicy',
    'Allow, Forbid or Replace',
    'Other',
    unsupported('supported values: "Allow", "Forbid", "Replace"'),
  ),
  at(template('spec.selector'), 'not set', { matchLabels: { app: 'a' } }, invalid('`selector` will be auto-generated')),
  at(template('spec.manualSelector'), 'not true', true, unsupported('supported values: "nil", "false"')),
  at('metadata.name', 'at most 52 characters', 'a'.repeat(53), invalid('must be no more than 52 characters')),
  ...within('spec.jobTemplate.', jobSpec),
];
