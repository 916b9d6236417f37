/**
 * Admission policies and bindings (pkg/apis/admissionregistration/validation/validation.go). Expressions are compiled
 * by the API that admits them, which loads their language only then (shared/admission).
 */

import {
  duplicate,
  errorsAt,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  requiredOneOf,
  tooMany,
} from '../../kubernetes/causes.ts';
import { validateSelector } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { validateConditions } from '../../kubernetes/validate-conditions.ts';
import {
  dns1035LabelErrors,
  pathSegmentErrors,
  qualifiedNameErrors,
  subdomainErrors,
  subdomainName,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import type {
  AuditAnnotation,
  KubeMutatingAdmissionPolicy,
  KubeMutatingAdmissionPolicyBinding,
  KubeObject,
  KubeValidatingAdmissionPolicy,
  KubeValidatingAdmissionPolicyBinding,
  MatchCondition,
  MatchResources,
  Mutation,
  NamedRuleWithOperations,
  ParamKind,
  ParamRef,
  Validation,
  Variable,
} from '../types.ts';

export const FAILURE_POLICIES = ['Fail', 'Ignore'];
export const MATCH_POLICIES = ['Equivalent', 'Exact'];
const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const SCOPES = ['*', 'Cluster', 'Namespaced'];
const ACTIONS = ['Audit', 'Deny', 'Warn'];
const NOT_FOUND_ACTIONS = ['Deny', 'Allow'];
const REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge', 'Unauthorized'];
export const REINVOCATION_POLICIES = ['IfNeeded', 'Never'];
const PATCH_TYPES = ['ApplyConfiguration', 'JSONPatch'];
const CONDITIONS_MAX = 64;
const AUDIT_ANNOTATIONS_MAX = 20;
const AUDIT_EXPRESSION_MAX = 5 * 1_024;
const IDENTIFIER = /^[_a-zA-Z][_a-zA-Z0-9]*$/;
const RESERVED = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

export const metadataCauses = (object: KubeObject, old: KubeObject | undefined): Cause[] =>
  validateObjectMetadata(object, old, { namespaced: false, name: subdomainName });

export function validateRule(rule: NamedRuleWithOperations, field: string): Cause[] {
  const { resourceNames = [], operations = [], apiGroups = [], apiVersions = [], resources = [], scope } = rule;
  const causes: Cause[] = [];
  for (const [i, name] of resourceNames.entries()) {
    causes.push(...errorsAt(`${field}.resourceNames[${i}]`, name, pathSegmentErrors));
    if (resourceNames.indexOf(name) < i) causes.push(duplicate(`${field}.resourceNames[${i}]`, name));
  }
  causes.push(
    ...validateNames(apiGroups, `${field}.apiGroups`, true),
    ...validateNames(apiVersions, `${field}.apiVersions`),
  );
  causes.push(...validateResourceNames(resources, `${field}.resources`));
  if (operations.length === 0) causes.push(required(`${field}.operations`));
  if (operations.length > 1 && operations.includes('*')) {
    causes.push(
      invalidValue(`${field}.operations`, operations, "if '*' is present, must not specify other operations"),
    );
  }
  for (const [i, operation] of operations.entries()) {
    if (!OPERATIONS.includes(operation)) causes.push(notSupported(`${field}.operations[${i}]`, operation, OPERATIONS));
  }
  if (scope !== undefined && !SCOPES.includes(scope)) causes.push(notSupported(`${field}.scope`, scope, SCOPES));
  return causes;
}

function validateNames(names: readonly string[], field: string, mayBeEmpty = false): Cause[] {
  if (names.length === 0) return [required(field)];
  const causes: Cause[] = [];
  if (names.length > 1 && names.includes('*')) {
    const what = field.endsWith('apiGroups') ? 'API groups' : 'API versions';
    causes.push(invalidValue(field, names, `if '*' is present, must not specify other ${what}`));
  }
  if (!mayBeEmpty) {
    for (const [i, name] of names.entries()) if (name === '') causes.push(required(`${field}[${i}]`));
  }
  return causes;
}

/** A wildcard makes more specific resources beside it useless. */
function validateResourceNames(resources: readonly string[], field: string): Cause[] {
  if (resources.length === 0) return [required(field)];
  const causes: Cause[] = [];
  const hasWildcards = resources.some((each) => each === '*/*');
  for (const [i, resource] of resources.entries()) {
    if (resource === '') causes.push(required(`${field}[${i}]`));
    if (resource.split('/').length > 2) {
      causes.push(invalidValue(`${field}[${i}]`, resource, "must be 'resource' or 'resource/subresource'"));
    }
  }
  if (resources.length > 1 && hasWildcards) {
    causes.push(invalidValue(field, resources, "if '*/*' is present, must not specify other resources"));
  }
  if (resources.includes('*') && resources.some((each) => each !== '*' && !each.includes('/'))) {
    causes.push(
      invalidValue(field, resources, "if '*' is present, must not specify other resources without subresources"),
    );
  }
  return causes;
}

function validateMatch(match: MatchResources | undefined, field: string): Cause[] {
  if (match === undefined) return [];
  const { matchPolicy, namespaceSelector, objectSelector, resourceRules = [], excludeResourceRules = [] } = match;
  return [
    ...requiredOneOf(`${field}.matchPolicy`, matchPolicy, MATCH_POLICIES),
    ...validateSelector(namespaceSelector, `${field}.namespaceSelector`),
    ...validateSelector(objectSelector, `${field}.objectSelector`),
    ...resourceRules.flatMap((rule, i) => validateRule(rule, `${field}.resourceRules[${i}]`)),
    ...excludeResourceRules.flatMap((rule, i) => validateRule(rule, `${field}.excludeResourceRules[${i}]`)),
  ];
}

function validateParamKind(paramKind: ParamKind | undefined): Cause[] {
  if (paramKind === undefined) return [];
  const { apiVersion = '', kind = '' } = paramKind;
  const field = 'spec.paramKind';
  const causes: Cause[] = [];
  const [group = '', version = apiVersion] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
  if (apiVersion === '') causes.push(required(`${field}.apiVersion`));
  else if (apiVersion.split('/').length > 2) {
    causes.push(invalidValue(`${field}.apiVersion`, apiVersion, `unexpected GroupVersion string: ${apiVersion}`));
  } else {
    if (group !== '') causes.push(...errorsAt(`${field}.apiVersion`, group, subdomainErrors));
    causes.push(...errorsAt(`${field}.apiVersion`, version, dns1035LabelErrors));
  }
  if (kind === '') return [...causes, required(`${field}.kind`)];
  for (const error of dns1035LabelErrors(kind.toLowerCase())) {
    causes.push(invalidValue(`${field}.kind`, kind, `may have mixed case, but should otherwise match: ${error}`));
  }
  return causes;
}

export function validateConditionNames(conditions: readonly MatchCondition[], field = 'spec.matchConditions'): Cause[] {
  const names = conditions.map(({ name }) => name ?? '');
  return [
    ...(conditions.length > CONDITIONS_MAX ? [tooMany(field, conditions.length, CONDITIONS_MAX)] : []),
    ...conditions.flatMap(({ name = '', expression = '' }, i) => [
      ...(expression.trim() === '' ? [required(`${field}[${i}].expression`)] : []),
      ...(name === '' ? [required(`${field}[${i}].name`)] : errorsAt(`${field}[${i}].name`, name, qualifiedNameErrors)),
      ...(name !== '' && names.indexOf(name) < i ? [duplicate(`${field}[${i}].name`, name)] : []),
    ]),
  ];
}

function validateVariables(variables: readonly Variable[]): Cause[] {
  return variables.flatMap(({ name = '', expression = '' }, i) => {
    const field = `spec.variables[${i}]`;
    const causes: Cause[] = [];
    if (name.trim() === '') causes.push(required(`${field}.name`, 'name is not specified'));
    else if (!IDENTIFIER.test(name) || RESERVED.has(name)) {
      causes.push(invalidValue(`${field}.name`, name, 'name is not a valid CEL identifier'));
    }
    if (expression.trim() === '') causes.push(required(`${field}.expression`, 'expression is not specified'));
    return causes;
  });
}

function validateValidation(validation: Validation, field: string): Cause[] {
  const { expression = '', message = '', messageExpression = '', reason } = validation;
  const causes: Cause[] = [];
  if (expression.trim() === '') causes.push(required(`${field}.expression`, 'expression is not specified'));
  if (messageExpression !== '' && messageExpression.trim() === '') {
    causes.push(invalidValue(`${field}.messageExpression`, messageExpression, 'must be non-empty if specified'));
  }
  if (message !== '' && message.trim() === '') {
    causes.push(invalidValue(`${field}.message`, message, 'message must be non-empty if specified'));
  } else if (/[\n\r]/.test(message.trim())) {
    causes.push(invalidValue(`${field}.message`, message, 'message must not contain line breaks'));
  }
  if (reason !== undefined && !REASONS.includes(reason)) causes.push(notSupported(`${field}.reason`, reason, REASONS));
  return causes;
}

function validateAuditAnnotations(annotations: readonly AuditAnnotation[], policyName: string): Cause[] {
  const field = 'spec.auditAnnotations';
  const causes: Cause[] = [];
  if (annotations.length > AUDIT_ANNOTATIONS_MAX) {
    const why = `must not have more than ${AUDIT_ANNOTATIONS_MAX} auditAnnotations`;
    causes.push(invalidValue(field, annotations, why));
  }
  const keys = annotations.map(({ key }) => key);
  for (const [i, { key = '', valueExpression = '' }] of annotations.entries()) {
    const length = valueExpression.trim().length;
    causes.push(...errorsAt(`${field}[${i}].key`, `${policyName}/${key}`, qualifiedNameErrors));
    if (length === 0) causes.push(required(`${field}[${i}].valueExpression`, 'valueExpression is not specified'));
    else if (length > AUDIT_EXPRESSION_MAX) {
      const why = `must not exceed ${AUDIT_EXPRESSION_MAX} bytes in length`;
      causes.push(required(`${field}[${i}].valueExpression`, why));
    }
    if (keys.indexOf(key) < i) causes.push(duplicate(`${field}[${i}].key`, key));
  }
  return causes;
}

type PolicySpec = NonNullable<KubeValidatingAdmissionPolicy['spec']> & NonNullable<KubeMutatingAdmissionPolicy['spec']>;

/** What both kinds of policies have. */
function validatePolicy(spec: Partial<PolicySpec>): Cause[] {
  const { failurePolicy, paramKind, matchConstraints, matchConditions = [], variables = [] } = spec;
  return [
    ...requiredOneOf('spec.failurePolicy', failurePolicy, FAILURE_POLICIES),
    ...validateParamKind(paramKind),
    ...(matchConstraints === undefined ? [required('spec.matchConstraints')] : []),
    ...validateMatch(matchConstraints, 'spec.matchConstraints'),
    ...(matchConstraints !== undefined && (matchConstraints.resourceRules ?? []).length === 0
      ? [required('spec.matchConstraints.resourceRules')]
      : []),
    ...validateConditionNames(matchConditions),
    ...validateVariables(variables),
  ];
}

const NOTHING_TO_DO = 'validations or auditAnnotations must contain at least one item';

export function validateValidatingPolicy(
  policy: KubeValidatingAdmissionPolicy,
  old: KubeObject | undefined,
  subresource: string,
): Cause[] {
  const causes = metadataCauses(policy, old);
  if (subresource === 'status')
    return [...causes, ...validateConditions(policy.status?.conditions ?? [], 'status.conditions')];
  const { spec = {} } = policy;
  const { validations = [], auditAnnotations = [] } = spec;
  const isEmpty = validations.length === 0 && auditAnnotations.length === 0;
  return [
    ...causes,
    ...validatePolicy(spec),
    ...(isEmpty ? [required('spec.validations', NOTHING_TO_DO), required('spec.auditAnnotations', NOTHING_TO_DO)] : []),
    ...validations.flatMap((each, i) => validateValidation(each, `spec.validations[${i}]`)),
    ...validateAuditAnnotations(auditAnnotations, policy.metadata.name ?? ''),
  ];
}

function validateMutation(
  { patchType = '', applyConfiguration, jsonPatch }: Partial<Mutation>,
  field: string,
): Cause[] {
  if (patchType === '') return [required(`${field}.patchType`)];
  if (!PATCH_TYPES.includes(patchType)) return [notSupported(`${field}.patchType`, patchType, PATCH_TYPES)];
  const isApply = patchType === 'ApplyConfiguration';
  const wanted = isApply ? 'applyConfiguration' : 'jsonPatch';
  const other = isApply ? 'jsonPatch' : 'applyConfiguration';
  const expression = (isApply ? applyConfiguration : jsonPatch)?.expression ?? '';
  return [
    ...((isApply ? applyConfiguration : jsonPatch) === undefined
      ? [required(`${field}.${wanted}`, `must be specified when patchType is ${patchType}`)]
      : expression.trim() === ''
        ? [required(`${field}.${wanted}.expression`, 'expression is not specified')]
        : []),
    ...((isApply ? jsonPatch : applyConfiguration) === undefined
      ? []
      : [invalidValue(`${field}.${other}`, '{}', `must not be specified when patchType is ${patchType}`)]),
  ];
}

export function validateMutatingPolicy(policy: KubeMutatingAdmissionPolicy, old: KubeObject | undefined): Cause[] {
  const { spec = {} } = policy;
  const { mutations = [], reinvocationPolicy } = spec;
  return [
    ...metadataCauses(policy, old),
    ...validatePolicy(spec as Partial<PolicySpec>),
    ...(mutations.length === 0 ? [required('spec.mutations', 'mutations must contain at least one item')] : []),
    ...mutations.flatMap((each, i) => validateMutation(each, `spec.mutations[${i}]`)),
    ...requiredOneOf('spec.reinvocationPolicy', reinvocationPolicy, REINVOCATION_POLICIES),
  ];
}

function validateParamRef(ref: ParamRef | undefined): Cause[] {
  if (ref === undefined) return [];
  const { name = '', selector, parameterNotFoundAction } = ref;
  const field = 'spec.paramRef';
  const areBoth = name !== '' && selector !== undefined;
  const exclusive = 'name and selector are mutually exclusive';
  return [
    ...(name === '' ? [] : errorsAt(`${field}.name`, name, pathSegmentErrors)),
    ...(areBoth ? [forbiddenField(`${field}.name`, exclusive)] : []),
    ...validateSelector(selector, `${field}.selector`),
    ...(areBoth ? [forbiddenField(`${field}.selector`, exclusive)] : []),
    ...(name === '' && selector === undefined ? [required(field, 'one of name or selector must be specified')] : []),
    ...requiredOneOf(`${field}.parameterNotFoundAction`, parameterNotFoundAction, NOT_FOUND_ACTIONS),
  ];
}

function validateBinding(object: KubeMutatingAdmissionPolicyBinding, old: KubeObject | undefined): Cause[] {
  const { policyName = '', paramRef, matchResources } = object.spec ?? {};
  return [
    ...metadataCauses(object, old),
    ...(policyName === '' ? [required('spec.policyName')] : errorsAt('spec.policyName', policyName, subdomainErrors)),
    ...validateParamRef(paramRef),
    ...validateMatch(matchResources, 'spec.matchResources'),
  ];
}

export const validateMutatingBinding = validateBinding;

const BOTH_ACTIONS =
  'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)';

export function validateValidatingBinding(
  binding: KubeValidatingAdmissionPolicyBinding,
  old: KubeObject | undefined,
): Cause[] {
  const field = 'spec.validationActions';
  const { validationActions: actions = [] } = binding.spec ?? {};
  return [
    ...validateBinding(binding, old),
    ...actions.flatMap((action, i) => [
      ...(ACTIONS.includes(action) ? [] : [notSupported(`${field}[${i}]`, action, ACTIONS)]),
      ...(actions.indexOf(action) < i ? [duplicate(`${field}[${i}]`, action)] : []),
    ]),
    ...(actions.includes('Deny') && actions.includes('Warn') ? [invalidValue(field, actions, BOTH_ACTIONS)] : []),
    ...(actions.length === 0 ? [required(field, 'at least one validation action is required')] : []),
  ];
}
