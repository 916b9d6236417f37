/** Constraints of admissionregistration.k8s.io. Those of expressions: shared/admission. */
import { at, type Constraint, duplicate, forbidden, invalid, on, required, unsupported } from './constraint.ts';
import { labelSelector } from './workloads.ts';

const rule = (path: string): Constraint[] => [
  at(`${path}.operations`, 'at least one', [], required()),
  at(`${path}.operations[0]`, 'one of *, CONNECT, CREATE, DELETE, UPDATE', 'READ', unsupported()),
  on(`${path}.operations`, '* alone', { [`${path}.operations`]: ['*', 'CREATE'] }, invalid()),
  at(`${path}.apiGroups`, 'at least one', [], required()),
  at(`${path}.apiVersions`, 'at least one', [], required()),
  at(`${path}.resources`, 'at least one', [], required()),
  at(`${path}.scope`, 'one of *, Cluster, Namespaced', 'Galaxy', unsupported()),
  on(`${path}.resourceNames[1]`, 'unique', { [`${path}.resourceNames`]: ['a', 'a'] }, duplicate()),
];

/** A valid one. */
export const webhook = {
  name: 'hook.example.com',
  clientConfig: { url: 'https://hook.example.com/' },
  rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
};

const policy: Constraint[] = [
  at('spec.failurePolicy', 'Fail or Ignore', 'Panic', unsupported()),
  at('spec.matchConstraints', 'set', undefined, required()),
  at('spec.matchConstraints.resourceRules', 'at least one', [], required()),
  at('spec.matchConstraints.matchPolicy', 'Equivalent or Exact', 'Fuzzy', unsupported()),
  ...rule('spec.matchConstraints.resourceRules[0]'),
  ...labelSelector('spec.matchConstraints.objectSelector'),
  on('spec.paramKind.apiVersion', 'set', { 'spec.paramKind': { kind: 'ConfigMap' } }, required()),
  on('spec.paramKind.kind', 'set', { 'spec.paramKind': { apiVersion: 'v1' } }, required()),
  on('spec.matchConditions[0].expression', 'set', { 'spec.matchConditions': [{ name: 'a' }] }, required()),
  on('spec.matchConditions[0].name', 'set', { 'spec.matchConditions': [{ expression: 'true' }] }, required()),
  on(
    'spec.variables[0].name',
    'an identifier',
    { 'spec.variables': [{ name: 'a-b', expression: '1' }] },
    invalid('name is not a valid CEL identifier'),
  ),
  on('spec.variables[0].expression', 'set', { 'spec.variables': [{ name: 'a', expression: ' ' }] }, required()),
];

export const validatingPolicies: Constraint[] = [
  ...policy,
  on('spec.validations', 'at least one, or auditAnnotations', { 'spec.validations': [] }, required()),
  at('spec.validations[0].expression', 'set', ' ', required()),
  at('spec.validations[0].message', 'no line breaks', 'a\nb', invalid()),
  at('spec.validations[0].reason', 'one of four', 'Bored', unsupported()),
  on(
    'spec.auditAnnotations[0].key',
    'a qualified name',
    { 'spec.auditAnnotations': [{ key: 'a b', valueExpression: "'a'" }] },
    invalid(),
  ),
];

export const mutatingPolicies: Constraint[] = [
  ...policy,
  at('spec.mutations', 'at least one', [], required()),
  at('spec.mutations[0].patchType', 'ApplyConfiguration or JSONPatch', 'Merge', unsupported()),
  at('spec.mutations[0].jsonPatch', 'set', undefined, required()),
  at('spec.reinvocationPolicy', 'IfNeeded or Never', 'Always', unsupported()),
];

const webhooks: Constraint[] = [
  at('webhooks[0].name', 'set', '', required()),
  at('webhooks[0].name', 'a domain with at least three segments', 'a.b', invalid()),
  on('webhooks[1].name', 'unique', { 'webhooks[1]': webhook }, duplicate()),
  at('webhooks[0].rules[0].operations', 'at least one', [], required()),
  at('webhooks[0].rules[0].operations[0]', 'one of *, CONNECT, CREATE, DELETE, UPDATE', 'READ', unsupported()),
  at('webhooks[0].rules[0].scope', 'one of *, Cluster, Namespaced', 'Galaxy', unsupported()),
  at('webhooks[0].failurePolicy', 'Fail or Ignore', 'Panic', unsupported()),
  at('webhooks[0].matchPolicy', 'Equivalent or Exact', 'Fuzzy', unsupported()),
  at('webhooks[0].sideEffects', 'None or NoneOnDryRun', 'Some', unsupported()),
  at('webhooks[0].timeoutSeconds', '1 to 30', 31, invalid('the timeout value must be between 1 and 30 seconds')),
  at('webhooks[0].clientConfig', 'a url or a service', {}, required('exactly one of url or service is required')),
  at('webhooks[0].clientConfig.url', 'https', 'http://h.example', invalid()),
  on(
    'webhooks[0].clientConfig.service.name',
    'set',
    { 'webhooks[0].clientConfig': { service: { namespace: 'default', name: '' } } },
    required('service name is required'),
  ),
  on(
    'webhooks[0].clientConfig.service.path',
    'segments are subdomains',
    { 'webhooks[0].clientConfig': { service: { namespace: 'default', name: 's', path: '/a//b' } } },
    invalid('segment[1] may not be empty'),
  ),
  at('webhooks[0].admissionReviewVersions', 'at least one', [], required()),
  at('webhooks[0].admissionReviewVersions', 'v1 is one', ['v2'], invalid('must include at least one of v1')),
  on(
    'webhooks[0].matchConditions[0].name',
    'set',
    { 'webhooks[0].matchConditions': [{ expression: 'true' }] },
    required(),
  ),
  ...labelSelector('webhooks[0].objectSelector'),
];

export const validatingWebhooks = webhooks;
export const mutatingWebhooks: Constraint[] = [
  ...webhooks,
  at('webhooks[0].reinvocationPolicy', 'IfNeeded or Never', 'Always', unsupported()),
];

export const mutatingBindings: Constraint[] = [
  at('spec.policyName', 'set', '', required()),
  on('spec.paramRef', 'a name or a selector', { 'spec.paramRef': { parameterNotFoundAction: 'Deny' } }, required()),
  on('spec.paramRef.parameterNotFoundAction', 'Allow or Deny', { 'spec.paramRef': { name: 'a' } }, required()),
  on(
    'spec.paramRef.name',
    'not together with a selector',
    { 'spec.paramRef': { name: 'a', selector: {}, parameterNotFoundAction: 'Deny' } },
    forbidden(),
  ),
];

export const validatingBindings: Constraint[] = [
  ...mutatingBindings,
  at('spec.validationActions', 'at least one', [], required()),
  at('spec.validationActions[0]', 'one of Audit, Deny, Warn', 'Log', unsupported()),
  on('spec.validationActions[1]', 'unique', { 'spec.validationActions': ['Deny', 'Deny'] }, duplicate()),
  on('spec.validationActions', 'not Deny with Warn', { 'spec.validationActions': ['Deny', 'Warn'] }, invalid()),
];
