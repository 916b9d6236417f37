/** Admission policies and their bindings. Defaults: pkg/apis/admissionregistration/v1/defaults.go. */

import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutNulls } from '../../kubernetes/normal-form.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesSpec, preparesStatus } from '../prepare.ts';
import { STATUS_PART, servedKind } from '../served-kind.ts';
import type {
  KubeMutatingAdmissionPolicy,
  KubeMutatingAdmissionPolicyBinding,
  KubeValidatingAdmissionPolicy,
  KubeValidatingAdmissionPolicyBinding,
  MatchResources,
  ParamKind,
} from '../types.ts';
import { MUTATING_BINDINGS, MUTATING_POLICIES, VALIDATING_BINDINGS, VALIDATING_POLICIES } from './resource.ts';
import {
  validateMutatingBinding,
  validateMutatingPolicy,
  validateValidatingBinding,
  validateValidatingPolicy,
} from './validate.ts';

function withMatchDefaults(match: MatchResources): MatchResources {
  const rules = (all: MatchResources['resourceRules']) =>
    (all ?? []).map((rule) => ({ ...rule, scope: rule.scope ?? '*' }));
  return {
    ...match,
    namespaceSelector: match.namespaceSelector ?? {},
    objectSelector: match.objectSelector ?? {},
    ...(match.resourceRules === undefined ? {} : { resourceRules: rules(match.resourceRules) }),
    ...(match.excludeResourceRules === undefined ? {} : { excludeResourceRules: rules(match.excludeResourceRules) }),
    matchPolicy: match.matchPolicy ?? 'Equivalent',
  };
}

/** Defaults of a policy of either kind. */
function storedPolicy(sent: object | undefined): Record<string, unknown> {
  const spec = withoutNulls(sent ?? {}) as NonNullable<KubeValidatingAdmissionPolicy['spec']>;
  const { matchConstraints } = spec;
  return {
    ...spec,
    ...(matchConstraints === undefined ? {} : { matchConstraints: withMatchDefaults(matchConstraints) }),
    failurePolicy: spec.failurePolicy ?? 'Fail',
  };
}

/** Defaults of a binding of either kind. */
function storedBinding(sent: object | undefined): Record<string, unknown> {
  const spec = withoutNulls(sent ?? {}) as NonNullable<KubeValidatingAdmissionPolicyBinding['spec']>;
  const { matchResources } = spec;
  return { ...spec, ...(matchResources === undefined ? {} : { matchResources: withMatchDefaults(matchResources) }) };
}

const kindText = (kind: ParamKind | undefined): string =>
  kind === undefined ? '<unset>' : `${kind.apiVersion ?? ''}/${kind.kind ?? ''}`;

const paramKindColumn = textColumn('ParamKind', 'Kind of the objects that parameterize the policy.');
const policyNameColumn = textColumn('PolicyName', 'The policy that the binding applies.');
const paramRefColumn = textColumn('ParamRef', 'The objects that parameterize the policy.');

const paramRefText = ({ spec = {} }: KubeMutatingAdmissionPolicyBinding): string => {
  const { paramRef } = spec;
  if (paramRef === undefined) return '<unset>';
  const { namespace = '', name = '*' } = paramRef;
  return namespace === '' ? name : `${namespace}/${name}`;
};

export const validatingadmissionpolicies: ResourceDescriptor = servedKind(VALIDATING_POLICIES, {
  subresources: [STATUS_PART],
  columns: [nameColumn, integerColumn('Validations', 'Expressions that must hold.'), paramKindColumn, ageColumn],
  row: (object: KubeValidatingAdmissionPolicy, nowMs) => [
    nameOf(object),
    (object.spec?.validations ?? []).length,
    kindText(object.spec?.paramKind),
    ageOf(object, nowMs),
  ],
  prepare: preparesStatus(VALIDATING_POLICIES, storedPolicy),
  validate: validateValidatingPolicy,
});

export const validatingadmissionpolicybindings: ResourceDescriptor = servedKind(VALIDATING_BINDINGS, {
  columns: [nameColumn, policyNameColumn, paramRefColumn, ageColumn],
  row: (object: KubeValidatingAdmissionPolicyBinding, nowMs) => [
    nameOf(object),
    object.spec?.policyName ?? '',
    paramRefText(object),
    ageOf(object, nowMs),
  ],
  prepare: preparesSpec(VALIDATING_BINDINGS, storedBinding),
  validate: validateValidatingBinding,
});

export const mutatingadmissionpolicies: ResourceDescriptor = servedKind(MUTATING_POLICIES, {
  columns: [nameColumn, integerColumn('Mutations', 'Expressions that change objects.'), paramKindColumn, ageColumn],
  row: (object: KubeMutatingAdmissionPolicy, nowMs) => [
    nameOf(object),
    (object.spec?.mutations ?? []).length,
    kindText(object.spec?.paramKind),
    ageOf(object, nowMs),
  ],
  prepare: preparesSpec(MUTATING_POLICIES, storedPolicy),
  validate: validateMutatingPolicy,
});

export const mutatingadmissionpolicybindings: ResourceDescriptor = servedKind(MUTATING_BINDINGS, {
  columns: [nameColumn, policyNameColumn, paramRefColumn, ageColumn],
  row: (object: KubeMutatingAdmissionPolicyBinding, nowMs) => [
    nameOf(object),
    object.spec?.policyName ?? '',
    paramRefText(object),
    ageOf(object, nowMs),
  ],
  prepare: preparesSpec(MUTATING_BINDINGS, storedBinding),
  validate: validateMutatingBinding,
});

/** Descriptors of what no policy is evaluated for. */
export const admissionKinds: readonly ResourceDescriptor[] = [
  validatingadmissionpolicies,
  validatingadmissionpolicybindings,
  mutatingadmissionpolicies,
  mutatingadmissionpolicybindings,
];
