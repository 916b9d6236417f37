/** Admission policies with their bindings, and webhooks. Defaults: pkg/apis/admissionregistration/v1/defaults.go. */

import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import { withoutNulls } from '../../kubernetes/normal-form.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { type Prepare, preparesSpec, preparesStatus, preparesWhole, STATUS_PART, servedKind } from '../served-kind.ts';
import type { StoredResource } from '../stored-resource.ts';
import type {
  KubeMutatingAdmissionPolicy,
  KubeMutatingAdmissionPolicyBinding,
  KubeMutatingWebhookConfiguration,
  KubeObject,
  KubeValidatingAdmissionPolicy,
  KubeValidatingAdmissionPolicyBinding,
  MatchResources,
  MutatingWebhook,
  ParamKind,
  RuleWithOperations,
} from '../types.ts';
import {
  MUTATING_BINDINGS,
  MUTATING_POLICIES,
  MUTATING_WEBHOOKS,
  VALIDATING_BINDINGS,
  VALIDATING_POLICIES,
  VALIDATING_WEBHOOKS,
} from './resource.ts';
import {
  metadataCauses,
  validateMutatingBinding,
  validateMutatingPolicy,
  validateValidatingBinding,
  validateValidatingPolicy,
} from './validate.ts';

const rules = (all: readonly RuleWithOperations[] | undefined) =>
  (all ?? []).map((rule) => ({ ...rule, scope: rule.scope ?? '*' }));

function withMatchDefaults(match: MatchResources): MatchResources {
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

const PORT = 443;
const TIMEOUT_SECONDS = 10;

function withWebhookDefaults(webhook: MutatingWebhook): MutatingWebhook {
  const { clientConfig, namespaceSelector, objectSelector, failurePolicy, matchPolicy, timeoutSeconds } = webhook;
  const { service } = clientConfig ?? {};
  return {
    ...webhook,
    ...(service && { clientConfig: { ...clientConfig, service: { ...service, port: service.port ?? PORT } } }),
    ...(webhook.rules && { rules: rules(webhook.rules) }),
    failurePolicy: failurePolicy ?? 'Fail',
    matchPolicy: matchPolicy ?? 'Equivalent',
    namespaceSelector: namespaceSelector ?? {},
    objectSelector: objectSelector ?? {},
    timeoutSeconds: timeoutSeconds ?? TIMEOUT_SECONDS,
  };
}

/** A configuration has no spec. A change of its webhooks raises its generation. */
function preparesWebhooks(names: StoredResource, defaults: (webhook: MutatingWebhook) => MutatingWebhook): Prepare {
  const whole = preparesWhole(names, (object: KubeMutatingWebhookConfiguration) => ({
    ...object,
    ...(object.webhooks && { webhooks: object.webhooks.map(defaults) }),
  }));
  const withGeneration = (object: KubeObject, generation: number): KubeObject => ({
    ...object,
    metadata: { ...object.metadata, generation },
  });
  return {
    hasGeneration: true,
    prepareForCreate: (object, context) => withGeneration(whole.prepareForCreate(object, context), 1),
    prepareForUpdate(next, old: KubeMutatingWebhookConfiguration, context) {
      const prepared: KubeMutatingWebhookConfiguration = whole.prepareForUpdate(next, old, context);
      const { generation = 1 } = old.metadata;
      return withGeneration(prepared, jsonEqual(prepared.webhooks, old.webhooks) ? generation : generation + 1);
    },
  };
}

const webhookCells = {
  columns: [nameColumn, integerColumn('Webhooks', 'Servers that are called.'), ageColumn],
  row: (object: KubeMutatingWebhookConfiguration, nowMs: number) => [
    nameOf(object),
    (object.webhooks ?? []).length,
    ageOf(object, nowMs),
  ],
  /** The webhooks themselves: functions/api/admission/webhooks.ts. */
  validate: metadataCauses,
};

export const validatingwebhookconfigurations: ResourceDescriptor = servedKind(VALIDATING_WEBHOOKS, {
  ...webhookCells,
  prepare: preparesWebhooks(VALIDATING_WEBHOOKS, withWebhookDefaults),
});

export const mutatingwebhookconfigurations: ResourceDescriptor = servedKind(MUTATING_WEBHOOKS, {
  ...webhookCells,
  prepare: preparesWebhooks(MUTATING_WEBHOOKS, (webhook) => ({
    ...withWebhookDefaults(webhook),
    reinvocationPolicy: webhook.reinvocationPolicy ?? 'Never',
  })),
});

/** Descriptors of what no policy is evaluated and no webhook called for. */
export const admissionKinds: readonly ResourceDescriptor[] = [
  validatingadmissionpolicies,
  validatingadmissionpolicybindings,
  mutatingadmissionpolicies,
  mutatingadmissionpolicybindings,
  validatingwebhookconfigurations,
  mutatingwebhookconfigurations,
];
