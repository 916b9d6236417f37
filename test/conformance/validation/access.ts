/** Constraints of rbac, policy, scheduling, node.k8s.io, autoscaling, certificates and ControllerRevisions. */
import { CERTIFICATE_REQUEST } from '../../support/application-objects.ts';
import {
  at,
  type Constraint,
  duplicate,
  type Edits,
  type ExpectedCause,
  forbidden,
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
  unsupported,
} from './constraint.ts';
import { labelSelector, share } from './workloads.ts';

const RULE = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
const rule = (field: string, what: string, edits: Edits, cause: ExpectedCause): Constraint =>
  on(`rules[0].${field}`, what, { 'rules[0]': { ...RULE, ...edits } }, cause);

const rules: Constraint[] = [
  rule('verbs', 'at least one', { verbs: [] }, required('verbs must contain at least one value')),
  rule('apiGroups', 'at least one', { apiGroups: [] }, required('resource rules must supply at least one api group')),
  rule('resources', 'at least one', { resources: [] }, required('resource rules must supply at least one resource')),
  rule(
    'nonResourceURLs',
    'not together with resources',
    { nonResourceURLs: ['/healthz'] },
    invalid('rules cannot apply to both regular resources and non-resource URLs'),
  ),
];

export const roles: Constraint[] = [
  ...rules,
  rule(
    'nonResourceURLs',
    'not in a namespace',
    { nonResourceURLs: ['/healthz'] },
    invalid('namespaced rules cannot apply to non-resource URLs'),
  ),
];

const SELECTORS = 'aggregationRule.clusterRoleSelectors';
export const clusterRoles: Constraint[] = [
  ...rules,
  on(
    SELECTORS,
    'at least one',
    { [SELECTORS]: [] },
    required('at least one clusterRoleSelector required if aggregationRule is non-nil'),
  ),
  ...labelSelector(`${SELECTORS}[0]`),
];

const RBAC = 'rbac.authorization.k8s.io';
const ACCOUNT = { kind: 'ServiceAccount', name: 'a', namespace: 'default' };
const subject = (field: string, what: string, value: object, cause: ExpectedCause): Constraint =>
  on(`subjects[0].${field}`, what, { 'subjects[0]': value }, cause);

const binding = (kind: string, kinds: string): Constraint[] => [
  on('roleRef.apiGroup', 'that of RBAC', { 'roleRef.apiGroup': 'other' }, unsupported(`supported values: "${RBAC}"`)),
  on('roleRef.kind', 'a role', { 'roleRef.kind': 'User' }, unsupported(`supported values: ${kinds}`)),
  on('roleRef.name', 'set', { 'roleRef.name': '' }, required()),
  on('roleRef.name', 'a path segment', { 'roleRef.name': 'a%b' }, invalid("may not contain '%'")),
  subject(
    'kind',
    'known',
    { kind: 'Pod', name: 'a' },
    unsupported('supported values: "ServiceAccount", "User", "Group"'),
  ),
  subject('name', 'set', { ...ACCOUNT, name: '' }, required()),
  subject('name', 'of an account: a DNS subdomain', { ...ACCOUNT, name: 'A_b' }, invalid()),
  subject('apiGroup', 'none for an account', { ...ACCOUNT, apiGroup: 'b' }, unsupported('supported values: ""')),
  ...['User', 'Group'].flatMap((each): Constraint[] => [
    subject('apiGroup', `that of RBAC for a ${each}`, { kind: each, name: 'a', apiGroup: 'b' }, unsupported()),
    subject(
      'name',
      `not empty for a ${each}`,
      { kind: each, name: '' },
      invalid(`${each.toLowerCase()} name cannot be empty`),
    ),
  ]),
  onUpdate('roleRef', 'immutable', { 'roleRef.name': 'other', 'roleRef.kind': kind }, invalid('cannot change roleRef')),
];

export const roleBindings: Constraint[] = binding('Role', '"Role", "ClusterRole"');
export const clusterRoleBindings: Constraint[] = [
  ...binding('ClusterRole', '"ClusterRole"'),
  subject('namespace', 'set for an account', { kind: 'ServiceAccount', name: 'a' }, required()),
];

const CONDITION = {
  type: 'DisruptionAllowed',
  status: 'True',
  reason: 'SufficientPods',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

/** metav1.Condition (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation, ValidateCondition). */
const conditions = (field: string): Constraint[] => {
  const condition = (name: string, what: string, edits: Edits, cause: ExpectedCause): Constraint =>
    onStatus(`${field}[0].${name}`, what, { [field]: [{ ...CONDITION, ...edits }] }, cause);
  return [
    onStatus(`${field}[1].type`, 'unique', { [field]: [CONDITION, CONDITION] }, duplicate()),
    condition('type', 'a qualified name', { type: 'a b' }, invalid()),
    condition(
      'status',
      'False, True or Unknown',
      { status: 'Yes' },
      unsupported('supported values: "False", "True", "Unknown"'),
    ),
    condition(
      'observedGeneration',
      'at least 0',
      { observedGeneration: -1 },
      invalid('must be greater than or equal to zero'),
    ),
    condition('lastTransitionTime', 'set', { lastTransitionTime: null }, required('must be set')),
    condition('reason', 'set', { reason: '' }, required('must be set')),
    condition(
      'reason',
      'an identifier',
      { reason: 'a b' },
      invalid(
        "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
      ),
    ),
    condition('reason', 'at most 1024 bytes', { reason: 'a'.repeat(1_025) }, tooLong('more than 1024 bytes')),
    condition('message', 'at most 32 KiB', { message: 'a'.repeat(32_769) }, tooLong('more than 32768 bytes')),
  ];
};

export const disruptionBudgets: Constraint[] = [
  on(
    'spec',
    'not both minAvailable and maxUnavailable',
    { 'spec.maxUnavailable': 1 },
    invalid('minAvailable and maxUnavailable cannot be both set'),
  ),
  ...share('spec.minAvailable'),
  ...share('spec.maxUnavailable'),
  ...labelSelector('spec.selector'),
  at(
    'spec.unhealthyPodEvictionPolicy',
    'AlwaysAllow or IfHealthyBudget',
    'Other',
    unsupported('supported values: "AlwaysAllow", "IfHealthyBudget"'),
  ),
  ...['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'].map((name) =>
    onStatus(`status.${name}`, 'at least 0', { [`status.${name}`]: -1 }, invalid(NOT_NEGATIVE)),
  ),
  ...conditions('status.conditions'),
];

export const priorityClasses: Constraint[] = [
  on(
    'metadata.name',
    'system- only for system classes',
    { 'metadata.name': 'system-mine' },
    forbidden(
      "priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class",
    ),
  ),
  at(
    'value',
    'at most 1,000,000,000',
    1_000_000_001,
    forbidden('maximum allowed value of a user defined priority is 1000000000'),
  ),
  at('preemptionPolicy', 'known', 'Other', unsupported('supported values: "PreemptLowerPriority", "Never"')),
  onUpdate('Value', 'immutable', { value: 1 }, forbidden('may not be changed in an update.')),
  onUpdate('preemptionPolicy', 'immutable', { preemptionPolicy: 'Never' }, invalid(IMMUTABLE)),
];

export const controllerRevisions: Constraint[] = [
  on('data', 'set', { data: undefined }, required('data is mandatory')),
  ...nonNegative('revision'),
  onUpdate('data', 'immutable', { data: { spec: { other: 1 } } }, invalid(IMMUTABLE)),
];

const toleration = { key: 'a', operator: 'Exists', effect: 'NoSchedule' };
export const runtimeClasses: Constraint[] = [
  at('handler', 'a DNS label', 'a.b', invalid()),
  at('handler', 'at most 63 characters', 'a'.repeat(64), invalid('must be no more than 63 characters')),
  onUpdate('handler', 'immutable', { handler: 'other' }, invalid(IMMUTABLE)),
  on('scheduling.nodeSelector', 'has the form of labels', { 'scheduling.nodeSelector': { 'a b': 'c' } }, invalid()),
  on(
    'scheduling.tolerations[0].key',
    'a qualified name',
    { 'scheduling.tolerations': [{ ...toleration, key: 'a b' }] },
    invalid(),
  ),
  on('scheduling.tolerations[1]', 'unique', { 'scheduling.tolerations': [toleration, toleration] }, duplicate()),
  on(
    'overhead.limits[apples]',
    'resources of containers',
    { 'overhead.podFixed': { apples: '1' } },
    invalid('must be a standard resource for containers'),
  ),
  on('overhead.limits[cpu]', 'at least 0', { 'overhead.podFixed': { cpu: '-1' } }, invalid(NOT_NEGATIVE)),
];

const TARGET = 'spec.scaleTargetRef';
const METRIC = 'spec.metrics[0]';
const reference = (path: string): Constraint[] =>
  ['kind', 'name'].flatMap((name): Constraint[] => [
    at(`${path}.${name}`, 'set', '', required()),
    at(`${path}.${name}`, 'a path segment', 'a%b', invalid("may not contain '%'")),
  ]);
const metric = (field: string, what: string, value: object, cause: ExpectedCause): Constraint =>
  on(`${METRIC}.${field}`, what, { [METRIC]: value }, cause);
const utilization = { type: 'Utilization', averageUtilization: 50 };
const average = { type: 'AverageValue', averageValue: '1' };
const named = { name: 'm' };
const describedObject = { kind: 'Service', name: 's' };
const POPULATE = 'must populate information for the given metric source';

/** Each source of metrics: a valid one. */
const SOURCES: Readonly<Record<string, { readonly type: string; readonly valid: object }>> = {
  resource: { type: 'Resource', valid: { name: 'cpu', target: utilization } },
  containerResource: { type: 'ContainerResource', valid: { name: 'cpu', container: 'main', target: utilization } },
  pods: { type: 'Pods', valid: { metric: named, target: average } },
  object: { type: 'Object', valid: { metric: named, describedObject, target: average } },
  external: { type: 'External', valid: { metric: named, target: average } },
};

const metrics: Constraint[] = [
  metric('type', 'set', { type: '' }, required('must specify a metric source type')),
  metric(
    'type',
    'known',
    { type: 'Other' },
    unsupported('supported values: "ContainerResource", "External", "Object", "Pods", "Resource"'),
  ),
  ...Object.entries(SOURCES).flatMap(([name, { type, valid }]): Constraint[] => {
    const source = (field: string, what: string, edits: object, cause: ExpectedCause): Constraint =>
      metric(`${name}.${field}`, what, { type, [name]: { ...valid, ...edits } }, cause);
    const targetType = 'must be either Utilization, Value, or AverageValue';
    return [
      metric(name, `set for ${type}`, { type }, required(POPULATE)),
      metric(
        name === 'pods' ? 'resource' : 'pods',
        `not for ${type}`,
        {
          type,
          [name]: valid,
          [name === 'pods' ? 'resource' : 'pods']: SOURCES[name === 'pods' ? 'resource' : 'pods']?.valid,
        },
        forbidden('must populate the given metric source only'),
      ),
      source('target.type', 'set', { target: { ...average, type: '' } }, required('must specify a metric target type')),
      source('target.type', 'known', { target: { ...average, type: 'Other' } }, invalid(targetType)),
      source(
        'target.averageUtilization',
        'greater than 0',
        { target: { type: 'Utilization', averageUtilization: 0 } },
        invalid('must be greater than 0'),
      ),
      source(
        'target.averageValue',
        'positive',
        { target: { type: 'AverageValue', averageValue: '0' } },
        invalid('must be positive'),
      ),
      source(
        'target.value',
        'positive',
        { target: { type: 'Value', value: '0', averageValue: '1' } },
        invalid('must be positive'),
      ),
      ...(name === 'resource' || name === 'containerResource'
        ? [
            source('name', 'set', { name: '' }, required('must specify a resource name')),
            source(
              'target.averageUtilization',
              'a target',
              { target: { type: 'Utilization' } },
              required('must set either a target raw value or a target utilization'),
            ),
            source(
              'target.averageValue',
              'one target',
              { target: { type: 'Utilization', averageUtilization: 50, averageValue: '1' } },
              forbidden('may not set both a target raw value and a target utilization'),
            ),
          ]
        : [
            source('metric.name', 'set', { metric: { name: '' } }, required('must specify a metric name')),
            source('metric.name', 'a path segment', { metric: { name: 'a%b' } }, invalid("may not contain '%'")),
            source(
              'target.averageValue',
              'a target',
              { target: { type: 'AverageValue' } },
              required(
                {
                  pods: 'must specify a positive target averageValue',
                  object: 'must set either a target value or averageValue',
                  external: 'must set either a target value for metric or a per-pod target',
                }[name],
              ),
            ),
          ]),
    ];
  }),
  metric(
    'containerResource.container',
    'set',
    { type: 'ContainerResource', containerResource: { name: 'cpu', target: utilization } },
    required('must specify a container'),
  ),
  metric(
    'containerResource.container',
    'a DNS label',
    { type: 'ContainerResource', containerResource: { name: 'cpu', container: 'A_b', target: utilization } },
    invalid(),
  ),
  metric(
    'external.target.value',
    'one target',
    { type: 'External', external: { metric: named, target: { type: 'Value', value: '1', averageValue: '1' } } },
    forbidden('may not set both a target value for metric and a per-pod target'),
  ),
  metric(
    'object.describedObject.kind',
    'set',
    { type: 'Object', object: { metric: named, target: average, describedObject: { kind: '', name: 's' } } },
    required(),
  ),
  metric(
    'object.describedObject.name',
    'set',
    { type: 'Object', object: { metric: named, target: average, describedObject: { kind: 'Service', name: '' } } },
    required(),
  ),
];

const policy = { type: 'Pods', value: 1, periodSeconds: 15 };
const behavior: Constraint[] = ['scaleUp', 'scaleDown'].flatMap((direction): Constraint[] => {
  const path = `spec.behavior.${direction}`;
  const scaling = (field: string, what: string, edits: object, cause: ExpectedCause): Constraint =>
    on(`${path}.${field}`, what, { [path]: { policies: [policy], ...edits } }, cause);
  const first = (field: string, what: string, edits: object, cause: ExpectedCause): Constraint =>
    scaling(`policies[0].${field}`, what, { policies: [{ ...policy, ...edits }] }, cause);
  return [
    scaling(
      'stabilizationWindowSeconds',
      'at least 0',
      { stabilizationWindowSeconds: -1 },
      invalid('must be greater than or equal to zero'),
    ),
    scaling(
      'stabilizationWindowSeconds',
      'at most 3600',
      { stabilizationWindowSeconds: 3_601 },
      invalid('must be less than or equal to 3600'),
    ),
    scaling(
      'selectPolicy',
      'known',
      { selectPolicy: 'Other' },
      unsupported('supported values: "Disabled", "Max", "Min"'),
    ),
    leftOut(`${path}.policies`, 'at least one', 'the policies of upstream are the default'),
    first('type', 'Percent or Pods', { type: 'Other' }, unsupported('supported values: "Percent", "Pods"')),
    first('value', 'greater than 0', { value: 0 }, invalid('must be greater than zero')),
    first('periodSeconds', 'greater than 0', { periodSeconds: 0 }, invalid('must be greater than zero')),
    first('periodSeconds', 'at most 1800', { periodSeconds: 1_801 }, invalid('must be less than or equal to 1800')),
  ];
});

export const autoscalers: Constraint[] = [
  at('spec.minReplicas', 'at least 1', 0, invalid('must be greater than or equal to 1')),
  at('spec.maxReplicas', 'at least 1', 0, invalid('must be greater than 0')),
  on(
    'spec.maxReplicas',
    'at least minReplicas',
    { 'spec.minReplicas': 4 },
    invalid('must be greater than or equal to `minReplicas`'),
  ),
  ...reference(TARGET),
  ...['currentReplicas', 'desiredReplicas'].map((name) =>
    onStatus(`status.${name}`, 'at least 0', { [`status.${name}`]: -1 }, invalid(NOT_NEGATIVE)),
  ),
  ...metrics,
  ...behavior,
];

/** The body has the parts of a certificate, and all of them are empty. */
const pem = (type: string, body = 'MAcwADAAAwEA'): string =>
  Buffer.from(`-----BEGIN ${type}-----\n${body}\n-----END ${type}-----`.padEnd(99)).toString('base64');
/** The common name of the valid request is changed: its signature is of another. */
const forgedRequest = Buffer.from(CERTIFICATE_REQUEST.replace('DANhZGEw', 'DANhZGIw')).toString('base64');
const SIGNER = 'spec.signerName';
const signer = (what: string, value: string, cause: ExpectedCause): Constraint => at(SIGNER, what, value, cause);

export const certificateRequests: Constraint[] = [
  at(
    'spec.request',
    'a PEM block',
    Buffer.from('x').toString('base64'),
    invalid('PEM block type must be CERTIFICATE REQUEST'),
  ),
  at(
    'spec.request',
    'a request that verifies with its own key',
    forgedRequest,
    invalid('the request is not signed by the key that it contains'),
  ),
  at('spec.request', 'at most 16 KB', 'A'.repeat(21_852), tooLong('more than 16384 bytes')),
  at('spec.usages', 'at least one', [], required('usages must be provided')),
  on('spec.usages[0]', 'known', { 'spec.usages': ['other'] }, unsupported()),
  on('spec.usages[1]', 'unique', { 'spec.usages': ['client auth', 'client auth'] }, duplicate()),
  signer('set', '', required('signerName must be provided')),
  signer(
    'not the legacy name',
    'kubernetes.io/legacy-unknown',
    invalid('the legacy signerName is not allowed via this API version'),
  ),
  signer(
    'domain and path',
    'a.b',
    invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'"),
  ),
  signer('labels in the domain', 'A_b.c/d', invalid()),
  signer('two labels in the domain', 'a/b', invalid('should be a domain with at least two segments separated by dots')),
  signer('subdomains in the path', 'a.b/C_d', invalid()),
  signer('at most 253 characters in the domain', `${'a.'.repeat(127)}b/c`, tooLong('more than 253 bytes')),
  signer('at most 571 characters', `a.b/${'c.'.repeat(284)}d`, tooLong('more than 571 bytes')),
  at(
    'spec.expirationSeconds',
    'at least 600',
    599,
    invalid('may not specify a duration less than 600 seconds (10 minutes)'),
  ),
  ...['Approved', 'Denied'].map((type) =>
    onStatus(
      'status.conditions',
      `${type} only through /approval`,
      { 'status.conditions': [{ type, status: 'True' }] },
      forbidden(`updates may not add a condition of type "${type}"`),
    ),
  ),
  onStatus('status.conditions[0].type', 'set', { 'status.conditions': [{ type: '', status: 'True' }] }, required()),
  onStatus('status.conditions[0].status', 'set', { 'status.conditions': [{ type: 'A', status: '' }] }, required()),
  onStatus(
    'status.conditions[0].status',
    'False, True or Unknown',
    { 'status.conditions': [{ type: 'A', status: 'Yes' }] },
    unsupported('supported values: "False", "True", "Unknown"'),
  ),
  onStatus(
    'status.conditions[0].status',
    'True for Failed',
    { 'status.conditions': [{ type: 'Failed', status: 'False' }] },
    unsupported('supported values: "True"'),
  ),
  onStatus(
    'status.conditions[1].type',
    'unique',
    {
      'status.conditions': [
        { type: 'A', status: 'True' },
        { type: 'A', status: 'True' },
      ],
    },
    duplicate(),
  ),
  onStatus(
    'status.conditions',
    'Failed stays',
    { 'status.conditions': [] },
    forbidden('updates may not remove a condition of type "Failed"'),
    { 'status.conditions': [{ type: 'Failed', status: 'True' }] },
  ),
  leftOut(
    'status.conditions',
    'Approved and Denied exclude each other, stay, and do not change',
    'tested in functions/api/policies.test.ts through /approval',
  ),
  onStatus(
    'status.certificate',
    'PEM blocks of certificates',
    { 'status.certificate': Buffer.from('x').toString('base64') },
    invalid('must contain at least one CERTIFICATE PEM block'),
  ),
  onStatus(
    'status.certificate',
    'no other PEM blocks',
    { 'status.certificate': pem('PRIVATE KEY') },
    invalid('only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY"'),
  ),
  onStatus(
    'status.certificate',
    'set once',
    { 'status.certificate': `${pem('CERTIFICATE')}Cg==` },
    forbidden('updates may not modify existing certificate content'),
    { 'status.certificate': pem('CERTIFICATE') },
  ),
  onStatus(
    'status.certificate',
    'certificates',
    { 'status.certificate': pem('CERTIFICATE', 'MAYwADAAAwEA') },
    invalid('found CERTIFICATE PEM block containing no certificate'),
  ),
];
