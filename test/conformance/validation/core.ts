/**
 * Constraints of kinds of core/v1 and coordination.k8s.io (pkg/apis/core/validation, pkg/apis/coordination/validation).
 */
import {
  at,
  type Constraint,
  duplicate,
  type Edits,
  type ExpectedCause,
  forbidden,
  given,
  IMMUTABLE,
  invalid,
  leftOut,
  NOT_NEGATIVE,
  nonNegative,
  on,
  onResize,
  onStatus,
  onUpdate,
  required,
  unsupported,
} from './constraint.ts';

const CIDR_TEXT = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
const POD_CIDR_TEXT = 'node updates may not change podCIDR except from "" to valid';
const TAINTS = 'metadata.taints';
const taint = (field: string, rule: string, value: object, cause: ExpectedCause): Constraint =>
  on(`${TAINTS}[0].${field}`, rule, { 'spec.taints': [{ key: 'a', effect: 'NoSchedule', ...value }] }, cause);

export const nodes: Constraint[] = [
  taint('key', 'a qualified name', { key: 'a b' }, invalid()),
  taint('key', 'set', { key: '' }, invalid()),
  taint('value', 'the form of a label value', { value: 'a b' }, invalid()),
  taint('effect', 'set', { effect: '' }, required()),
  taint(
    'effect',
    'NoSchedule, PreferNoSchedule or NoExecute',
    { effect: 'Never' },
    unsupported('supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'),
  ),
  on(
    `${TAINTS}[1]`,
    'unique by key and effect',
    {
      'spec.taints': [
        { key: 'a', effect: 'NoSchedule' },
        { key: 'a', effect: 'NoSchedule', value: 'b' },
      ],
    },
    duplicate('taints must be unique by key and effect pair'),
  ),
  onUpdate(`${TAINTS}[0].effect`, 'the same for updates', { 'spec.taints': [{ key: 'a', effect: '' }] }, required()),
  at('spec.podCIDRs[0]', 'a CIDR', '10.0.0.0', invalid(CIDR_TEXT)),
  at(
    'spec.podCIDRs',
    'one for each family',
    ['10.0.0.0/24', '10.0.1.0/24'],
    invalid('may specify no more than one CIDR for each IP family'),
  ),
  at(
    'spec.podCIDRs',
    'at most two',
    ['10.0.0.0/24', 'fd00::/64', 'fd01::/64'],
    invalid('may specify no more than one CIDR for each IP family'),
  ),
  on('spec.podCIDRs[1]', 'unique', { 'spec.podCIDRs': ['10.0.0.0/24', '10.0.0.0/24'] }, duplicate()),
  onUpdate(
    'spec.podCIDRs',
    'set once',
    { 'spec.podCIDRs': ['10.0.1.0/24'], 'spec.podCIDR': '10.0.1.0/24' },
    forbidden(POD_CIDR_TEXT),
    {
      'spec.podCIDRs': ['10.0.0.0/24'],
      'spec.podCIDR': '10.0.0.0/24',
    },
  ),
  onUpdate(
    'spec.providerID',
    'set once',
    { 'spec.providerID': 'other' },
    forbidden('node updates may not change providerID except from "" to valid'),
    { 'spec.providerID': 'aws:///a/i-1' },
  ),
  ...(['capacity', 'allocatable'] as const).flatMap((list): Constraint[] => [
    onStatus(`status.${list}.cpu`, 'at least 0', { [`status.${list}`]: { cpu: '-1' } }, invalid(NOT_NEGATIVE)),
    onStatus(
      `status.${list}.pods`,
      'whole where they count objects',
      { [`status.${list}`]: { pods: '1500m' } },
      invalid('must be an integer'),
    ),
  ]),
  onStatus(
    'status.addresses[1]',
    'unique',
    {
      'status.addresses': [
        { type: 'InternalIP', address: '10.0.0.1' },
        { type: 'InternalIP', address: '10.0.0.1' },
      ],
    },
    duplicate(),
  ),
  onStatus('status.declaredFeatures[1]', 'unique', { 'status.declaredFeatures': ['A', 'A'] }, duplicate()),
  onStatus(
    'status.declaredFeatures[1]',
    'sorted',
    { 'status.declaredFeatures': ['B', 'A'] },
    invalid('list must be sorted alphabetically'),
  ),
  ...['lower', 'A/', 'A/1', 'A-b'].map((name) =>
    onStatus(
      'status.declaredFeatures[0]',
      'names joined by /, the first in UpperCamelCase',
      { 'status.declaredFeatures': [name] },
      invalid(
        `invalid feature name "${name}": must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes`,
      ),
    ),
  ),
  onStatus(
    'status.declaredFeatures[0]',
    'at most 253 characters',
    { 'status.declaredFeatures': ['A'.repeat(254)] },
    invalid(`invalid feature name "${'A'.repeat(254)}": must be no more than 253 characters`),
  ),
  leftOut(
    'metadata.annotations',
    'the form of scheduler.alpha.kubernetes.io/taints and preferAvoidPods',
    'taints are in the spec, and no part of this cluster reads the annotations',
  ),
  leftOut('spec.configSource, status.config', 'its form', 'upstream has removed dynamic kubelet configuration'),
  onUpdate(
    'spec.externalID',
    'immutable',
    { 'spec.externalID': 'other' },
    forbidden('node updates may only change labels, taints, or capacity', '[]'),
  ),
];

const finalizer = (rule: string, text: string, cause: ExpectedCause): Constraint =>
  on('spec.finalizers', rule, { 'spec.finalizers': [text] }, cause);

export const namespaces: Constraint[] = [
  finalizer('qualified names', 'a b/c', invalid()),
  finalizer(
    'kubernetes, or with a domain',
    'other',
    invalid('name is neither a standard finalizer name nor is it fully qualified'),
  ),
  onStatus(
    'status.Phase',
    'Active while it is not deleted',
    { 'status.phase': 'Terminating' },
    invalid("may only be 'Active' if `deletionTimestamp` is empty"),
  ),
  leftOut(
    'status.Phase',
    'Terminating while it is deleted',
    'tested in shared/kinds/namespaces/serve.test.ts: the object must be deleted before',
  ),
];

const KEY_TEXT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const FROZEN = 'field is immutable when `immutable` is set';
const TOO_MUCH = 'objects have at most 100,000 characters (413)';

const keys = (field: string, value: string): Constraint[] => [
  on(`${field}[a b]`, 'characters of keys', { [field]: { 'a b': value } }, invalid(KEY_TEXT)),
  on(`${field}[..a]`, 'no two dots at the start', { [field]: { '..a': value } }, invalid("must not start with '..'")),
  on(`${field}[.]`, 'not .', { [field]: { '.': value } }, invalid("must not be '.'")),
  on(
    `${field}[${'a'.repeat(254)}]`,
    'at most 253 characters',
    { [field]: { ['a'.repeat(254)]: value } },
    invalid('must be no more than 253 characters'),
  ),
];

const frozen = (...fields: readonly string[]): Constraint[] => [
  onUpdate('immutable', 'stays true', { immutable: false }, forbidden(FROZEN), { immutable: true }),
  ...fields.map((field) =>
    onUpdate(field, 'immutable with `immutable`', { [field]: { other: 'YQ==' } }, forbidden(FROZEN), {
      immutable: true,
    }),
  ),
];

export const configMaps: Constraint[] = [
  ...keys('data', 'v'),
  ...keys('binaryData', 'YQ=='),
  on(
    'data[key]',
    'not in binaryData too',
    { 'binaryData.key': 'YQ==' },
    invalid('duplicate of key present in binaryData'),
  ),
  leftOut('data, binaryData', 'at most 1 MiB', TOO_MUCH),
  ...frozen('data', 'binaryData'),
];

const typed = (type: string, field: string, rule: string, data: Edits, cause: ExpectedCause): Constraint =>
  on(field, rule, { stringData: undefined, type, data }, cause);
const JSON_TYPES = [
  ['kubernetes.io/dockercfg', '.dockercfg'],
  ['kubernetes.io/dockerconfigjson', '.dockerconfigjson'],
] as const;

export const secrets: Constraint[] = [
  ...keys('data', 'YQ=='),
  leftOut('data', 'at most 1 MiB', TOO_MUCH),
  typed(
    'kubernetes.io/service-account-token',
    'metadata.annotations[kubernetes.io/service-account.name]',
    'set for a token of an account',
    {},
    required(),
  ),
  ...JSON_TYPES.flatMap(([type, key]): Constraint[] => [
    typed(type, `data[${key}]`, `set for ${type}`, {}, required()),
    typed(type, `data[${key}]`, `JSON for ${type}`, { [key]: 'YQ==' }, invalid(undefined)),
  ]),
  typed('kubernetes.io/basic-auth', 'data[username]', 'a user name or a password', {}, required()),
  typed('kubernetes.io/basic-auth', 'data[password]', 'a user name or a password', {}, required()),
  typed('kubernetes.io/ssh-auth', 'data[ssh-privatekey]', 'not empty for ssh-auth', {}, required()),
  typed('kubernetes.io/tls', 'data[tls.crt]', 'set for tls', {}, required()),
  typed('kubernetes.io/tls', 'data[tls.key]', 'set for tls', {}, required()),
  onUpdate('type', 'immutable', { type: 'example.com/other' }, invalid(IMMUTABLE)),
  ...frozen('data'),
];

export const leases: Constraint[] = [
  at('spec.leaseDurationSeconds', 'greater than 0', 0, invalid('must be greater than 0')),
  ...nonNegative('spec.leaseTransitions'),
  on(
    'spec.strategy.strategy',
    'one of Kubernetes, or with a domain',
    { 'spec.strategy': 'Other' },
    unsupported('supported values: "OldestEmulationVersion"'),
  ),
  on('spec.strategy.strategy', 'a qualified name', { 'spec.strategy': 'a b/c' }, invalid()),
  at(
    'spec.preferredHolder',
    'only with a strategy',
    'other',
    forbidden('may only be specified if `strategy` is defined'),
  ),
];

const newForm = {
  eventTime: '2026-01-01T00:00:00.000000Z',
  reportingComponent: 'example.com/a',
  reportingInstance: 'a-1',
  action: 'Start',
};
const long = (bytes: number): string => 'a'.repeat(bytes + 1);

/** The constraints of events in the newer form, through v1. */
export const events: Constraint[] = [
  on(
    'involvedObject.namespace',
    'that of the event',
    { 'involvedObject.namespace': 'other' },
    invalid('does not match event.namespace'),
  ),
  ...given(newForm, [
    at('reportingComponent', 'set', '', required()),
    at('reportingComponent', 'a qualified name', 'a b', invalid()),
    ...(
      [
        ['reportingInstance', 128],
        ['action', 128],
        ['reason', 128],
      ] as const
    ).flatMap(([field, bytes]): Constraint[] => [
      at(field, 'set', '', required()),
      at(field, `at most ${bytes} bytes`, long(bytes), invalid(`can have at most ${bytes} characters`)),
    ]),
    at('message', 'at most 1024 bytes', long(1_024), invalid('can have at most 1024 characters')),
  ]),
  leftOut(
    'through events.k8s.io/v1',
    'series, eventTime, type, unset fields, immutable fields',
    'tested in shared/kinds/events/serve.test.ts: other paths and field names',
  ),
];

const QUOTA_TEXT = 'must be a standard resource for quota';
const STANDARD_TEXT = 'must be a standard resource type or fully qualified';

/** Amounts of a quota, by name. */
const quotaAmounts = (
  list: string,
  make: (field: string, rule: string, wrong: Edits, cause: ExpectedCause) => Constraint,
) =>
  (
    [
      ['a b', 'qualified names', '1', invalid()],
      ['apples', 'known, or with a domain', '1', invalid(STANDARD_TEXT)],
      ['storage', 'known to quotas', '1', invalid(QUOTA_TEXT)],
      ['pods', 'at least 0', '-1', invalid(NOT_NEGATIVE)],
      ['pods', 'whole where they count objects', '1500m', invalid('must be an integer')],
    ] as const
  ).map(([name, rule, amount, cause]) => make(`${list}[${name}]`, rule, { [list]: { [name]: amount } }, cause));

const scopes = (rule: string, names: string[], text: string): Constraint =>
  at('spec.scopes', rule, names, invalid(text));
const MATCH = 'spec.scopeSelector.matchExpressions';
const scope = (field: string, rule: string, requirements: object[], cause: ExpectedCause): Constraint =>
  on(field, rule, { [MATCH]: requirements }, cause);
const byScope = (scopeName: string, operator = 'Exists', values?: string[]) => ({
  scopeName,
  operator,
  ...(values === undefined ? {} : { values }),
});

export const resourceQuotas: Constraint[] = [
  ...quotaAmounts('spec.hard', on),
  ...quotaAmounts('status.hard', onStatus),
  ...quotaAmounts('status.used', onStatus),
  scopes('known', ['Other'], 'unsupported scope'),
  on(
    'spec.scopes',
    'only with resources that have the scope',
    { 'spec.scopes': ['BestEffort'], 'spec.hard': { cpu: '1' } },
    invalid('unsupported scope applied to resource'),
  ),
  scopes('not both BestEffort and NotBestEffort', ['BestEffort', 'NotBestEffort'], 'conflicting scopes'),
  scopes('not both Terminating and NotTerminating', ['Terminating', 'NotTerminating'], 'conflicting scopes'),
  scope(`${MATCH}.scopeName`, 'known', [byScope('Other')], invalid('unsupported scope')),
  on(
    MATCH,
    'only with resources that have the scope',
    { [MATCH]: [byScope('BestEffort')], 'spec.hard': { cpu: '1' } },
    invalid('unsupported scope applied to resource'),
  ),
  scope(
    `${MATCH}.operator`,
    'Exists, except for PriorityClass',
    [byScope('Terminating', 'In', ['a'])],
    invalid(
      "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
    ),
  ),
  scope(
    `${MATCH}.values`,
    'set for In and NotIn',
    [byScope('PriorityClass', 'In')],
    required("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"),
  ),
  scope(
    `${MATCH}.values`,
    'not set for Exists and DoesNotExist',
    [byScope('PriorityClass', 'Exists', ['a'])],
    invalid("must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"),
  ),
  scope(`${MATCH}.operator`, 'known', [byScope('PriorityClass', 'Like')], invalid('not a valid selector operator')),
  on(
    'spec.scopes',
    'no contradicting scopes in the selector',
    { [MATCH]: [byScope('BestEffort'), byScope('NotBestEffort')] },
    invalid('conflicting scopes', MATCH),
  ),
  onUpdate('spec.scopes', 'immutable', { 'spec.scopes': ['BestEffort'] }, invalid(IMMUTABLE)),
];

const LIMIT = 'spec.limits[0]';
const limit = (field: string, rule: string, item: Edits, cause: ExpectedCause): Constraint =>
  on(`${LIMIT}.${field}`, rule, { 'spec.limits': [{ type: 'Container', ...item }] }, cause);

export const limitRanges: Constraint[] = [
  limit('type', 'a qualified name', { type: 'a b' }, invalid()),
  limit(
    'type',
    'known, or with a domain',
    { type: 'Machine' },
    invalid('must be a standard limit type or fully qualified'),
  ),
  on('spec.limits[1].type', 'unique', { 'spec.limits': [{ type: 'Pod' }, { type: 'Pod' }] }, duplicate()),
  ...['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'].flatMap((list): Constraint[] => [
    limit(`${list}[a b]`, 'qualified names', { [list]: { 'a b': '1' } }, invalid()),
    limit(`${list}[apples]`, 'known, or with a domain', { [list]: { apples: '1' } }, invalid(STANDARD_TEXT)),
    limit(
      `${list}[pods]`,
      'resources of containers',
      { [list]: { pods: '1' } },
      invalid('must be a standard resource for containers'),
    ),
  ]),
  ...['default', 'defaultRequest'].map((list) =>
    limit(
      list,
      'not for pods',
      { type: 'Pod', [list]: { cpu: '1' } },
      forbidden("may not be specified when `type` is 'Pod'"),
    ),
  ),
  limit(
    'limits',
    'min or max of storage for claims',
    { type: 'PersistentVolumeClaim', max: {} },
    required('either minimum or maximum storage value is required, but neither was provided'),
  ),
  ...(
    [
      ['min', 'min', 'max', 'min value 2 is greater than max value 1'],
      ['defaultRequest', 'min', 'defaultRequest', 'min value 2 is greater than default request value 1'],
      ['defaultRequest', 'defaultRequest', 'max', 'default request value 2 is greater than max value 1'],
      ['defaultRequest', 'defaultRequest', 'default', 'default request value 2 is greater than default limit value 1'],
      ['default', 'min', 'default', 'min value 2 is greater than default value 1'],
      ['default', 'default', 'max', 'default value 2 is greater than max value 1'],
    ] as const
  ).map(([field, high, low, text]) =>
    limit(`${field}[cpu]`, `${high} at most ${low}`, { [high]: { cpu: '2' }, [low]: { cpu: '1' } }, invalid(text)),
  ),
  limit(
    'maxLimitRequestRatio[cpu]',
    'at least 1',
    { maxLimitRequestRatio: { cpu: '500m' } },
    invalid('ratio 500m is less than 1'),
  ),
  limit(
    'maxLimitRequestRatio[cpu]',
    'at most max / min',
    { maxLimitRequestRatio: { cpu: '3' }, max: { cpu: '2' }, min: { cpu: '1' } },
    invalid('ratio 3 is greater than max/min = 2.000000'),
  ),
  limit(
    'defaultRequest[example.com/gpu]',
    'equal to the default where nothing is overcommitted',
    { default: { 'example.com/gpu': '2' }, defaultRequest: { 'example.com/gpu': '1' } },
    invalid('default value 2 must equal to defaultRequest value 1 in example.com/gpu'),
  ),
];

const POD_FIXED =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

const LIMITED = {
  'spec.containers[0].resources': { requests: { cpu: '1', memory: '1' }, limits: { cpu: '2', memory: '1' } },
};
const STORAGE = { 'ephemeral-storage': '1' };
const SIDECAR = { name: 'side', image: 'i', restartPolicy: 'Always', resources: { limits: { cpu: '1' } } };

export const pods: Constraint[] = [
  onUpdate(
    'spec.containers',
    'none added or removed',
    { 'spec.containers[1]': { name: 'b', image: 'i' } },
    forbidden('pod updates may not add or remove containers'),
  ),
  onUpdate('spec.containers[0].image', 'set', { 'spec.containers[0].image': '' }, required()),
  onUpdate('spec', 'immutable but for five fields', { 'spec.nodeSelector': { a: 'b' } }, forbidden(POD_FIXED)),
  onUpdate(
    'spec.activeDeadlineSeconds',
    'only becomes smaller',
    { 'spec.activeDeadlineSeconds': 11 },
    invalid('must be less than or equal to previous value'),
    { 'spec.activeDeadlineSeconds': 10 },
  ),
  onUpdate(
    'spec.activeDeadlineSeconds',
    'stays set',
    { 'spec.activeDeadlineSeconds': undefined },
    invalid('must not update from a positive integer to nil value'),
    { 'spec.activeDeadlineSeconds': 10 },
  ),
  onUpdate(
    'spec.tolerations',
    'none removed',
    { 'spec.tolerations': [] },
    forbidden('existing toleration can not be modified except its tolerationSeconds'),
    { 'spec.tolerations': [{ key: 'a', operator: 'Exists' }] },
  ),
  onUpdate(
    'spec.schedulingGates[0].name',
    'none added',
    { 'spec.schedulingGates': [{ name: 'a' }] },
    forbidden("only deletion is allowed, but found new scheduling gate 'a'"),
  ),
  leftOut(
    'status',
    'phases, addresses, and containers that have terminated',
    'tested in shared/kinds/pods/serve.test.ts',
  ),
  leftOut('spec.ephemeralContainers', 'through a subresource', 'the subresource is not served'),
  onUpdate(
    'spec',
    'resources through their subresource alone',
    { 'spec.containers[0].resources.limits.cpu': '3' },
    forbidden(POD_FIXED),
    LIMITED,
  ),
  onResize(
    '[]',
    'not of pods with resources of their own',
    { 'spec.containers[0].resources.limits.cpu': '3' },
    forbidden('pods with pod-level resources cannot be resized'),
    { ...LIMITED, 'spec.resources': { limits: { cpu: '4' } } },
  ),
  onResize(
    '[]',
    'not of static pods',
    { 'spec.containers[0].resources.limits.cpu': '3' },
    forbidden('static pods cannot be resized'),
    { ...LIMITED, 'spec.nodeName': 'n', 'metadata.annotations': { 'kubernetes.io/config.mirror': 'x' } },
  ),
  onResize(
    '[]',
    'not of pods of Windows',
    { 'spec.containers[0].resources.limits.cpu': '3' },
    forbidden('windows pods cannot be resized'),
    { ...LIMITED, 'spec.os': { name: 'windows' } },
  ),
  onResize(
    'spec',
    'the QoS class stays',
    { 'spec.containers[0].resources.requests.cpu': '2' },
    invalid('Pod QOS Class may not change as a result of resizing'),
    LIMITED,
  ),
  onResize(
    'spec',
    'a running container has its resources in the status',
    { 'spec.containers[0].resources.limits.cpu': '3' },
    forbidden('Pod running on node without support for resize'),
    { ...LIMITED, 'status.containerStatuses': [{ name: 'a', state: { running: {} } }] },
  ),
  onResize(
    'spec.containers',
    'none added or removed',
    { 'spec.containers[1]': { name: 'b', image: 'i' } },
    forbidden('containers may not be added or removed on resize'),
    LIMITED,
  ),
  onResize(
    'spec.initContainers[0].name',
    'none renamed or reordered',
    { 'spec.initContainers[0].name': 'other' },
    forbidden('initContainers may not be renamed or reordered on resize'),
    { ...LIMITED, 'spec.initContainers': [SIDECAR] },
  ),
  onResize(
    'spec.containers[0].resources.requests',
    'stay set',
    { 'spec.containers[0].resources': { requests: { memory: '1' } } },
    forbidden('resource requests cannot be removed'),
    { 'spec.containers[0].resources': { requests: { cpu: '1', memory: '1' } } },
  ),
  onResize(
    'spec.initContainers[0].resources.limits',
    'stay set',
    { 'spec.initContainers[0].resources.limits': {} },
    forbidden('resource limits cannot be removed'),
    { ...LIMITED, 'spec.initContainers': [SIDECAR] },
  ),
  onResize(
    'spec',
    'only CPU and memory of containers',
    { 'spec.containers[0].resources.limits.ephemeral-storage': '3' },
    forbidden('only cpu and memory resources are mutable'),
    { 'spec.containers[0].resources': { requests: STORAGE, limits: { 'ephemeral-storage': '2' } } },
  ),
  onResize(
    'spec',
    'only CPU and memory of containers',
    { 'spec.containers[0].resources.requests.ephemeral-storage': '2' },
    forbidden('only cpu and memory resources are mutable'),
    { 'spec.containers[0].resources': { requests: STORAGE } },
  ),
  onResize(
    'spec',
    'resize policies stay',
    { 'spec.containers[0].resizePolicy': [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] },
    forbidden('only cpu and memory resources are mutable'),
    LIMITED,
  ),
  onResize(
    'spec',
    'only CPU and memory of sidecars',
    { 'spec.initContainers[0].resources.limits.ephemeral-storage': '3' },
    forbidden('only cpu and memory resources for sidecar containers are mutable'),
    { ...LIMITED, 'spec.initContainers': [SIDECAR] },
  ),
  onResize(
    'spec',
    'nothing of other init containers',
    { 'spec.initContainers[0].resources.limits.cpu': '3' },
    forbidden('resources for non-sidecar init containers are immutable'),
    { ...LIMITED, 'spec.initContainers': [{ ...SIDECAR, restartPolicy: undefined }] },
  ),
];
