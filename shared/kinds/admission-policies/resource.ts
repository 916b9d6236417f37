import { type StoredResource, storedResource } from '../stored-resource.ts';

export const ADMISSION_GROUP = 'admissionregistration.k8s.io';

const admissionKind = (resource: string, kind: string): StoredResource =>
  storedResource({ group: ADMISSION_GROUP, resource, kind, scope: 'cluster' });

export const VALIDATING_POLICIES = admissionKind('validatingadmissionpolicies', 'ValidatingAdmissionPolicy');
export const VALIDATING_BINDINGS = admissionKind(
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
);
export const MUTATING_POLICIES = admissionKind('mutatingadmissionpolicies', 'MutatingAdmissionPolicy');
export const MUTATING_BINDINGS = admissionKind('mutatingadmissionpolicybindings', 'MutatingAdmissionPolicyBinding');

export const VALIDATING_WEBHOOKS = admissionKind('validatingwebhookconfigurations', 'ValidatingWebhookConfiguration');
export const MUTATING_WEBHOOKS = admissionKind('mutatingwebhookconfigurations', 'MutatingWebhookConfiguration');

/**
 * No policy is evaluated and no webhook called for these: a cluster could not be repaired after one that refuses
 * everything.
 */
export const ADMISSION_KINDS: readonly StoredResource[] = [
  VALIDATING_POLICIES,
  VALIDATING_BINDINGS,
  MUTATING_POLICIES,
  MUTATING_BINDINGS,
  VALIDATING_WEBHOOKS,
  MUTATING_WEBHOOKS,
];
