/** Constraints of admissionregistration.k8s.io. Those of expressions: functions/api/admission/policies. */
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
