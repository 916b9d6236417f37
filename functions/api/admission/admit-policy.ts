/** Admission of policies and webhooks themselves: expressions are compiled, and parameters must be readable. */

import { matchesRules } from '../../../shared/admission/match.rule.ts';
import { renewalOfNode } from '../../../shared/admission/node-renewal.ts';
import { groupAndVersionOf, paramDescriptor } from '../../../shared/admission/params.ts';
import { POLICIES_MAX } from '../../../shared/admission/policy-memory.ts';
import type { Call } from '../../../shared/api/call.ts';
import {
  mutatingadmissionpolicies,
  mutatingadmissionpolicybindings,
  mutatingwebhookconfigurations,
  validatingadmissionpolicies,
  validatingwebhookconfigurations,
} from '../../../shared/kinds/admission-policies/serve.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { LEASE_NAMESPACE } from '../../../shared/kinds/leases/resource.ts';
import { schemaOf } from '../../../shared/kinds/schemas.ts';
import type {
  KubeMutatingAdmissionPolicy,
  KubeMutatingAdmissionPolicyBinding,
  KubeObject,
  ParamKind,
  ParamRef,
} from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import { apiVersionOf } from '../../../shared/kubernetes/normal-form.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { CLIENT_TEXT_MAX } from '../../../shared/store/object-store.ts';
import type { ServeDependencies } from '../dependencies.ts';

const isWebhookKind = (descriptor: ResourceDescriptor): boolean =>
  descriptor === validatingwebhookconfigurations || descriptor === mutatingwebhookconfigurations;

/** @returns warnings @throws StatusError 403 or 422 */
export async function admitPolicy(
  dependencies: ServeDependencies,
  call: Call,
  next: KubeObject,
  stored: KubeObject | undefined,
): Promise<readonly string[]> {
  const { descriptor, target } = call;
  const name = next.metadata.name ?? '';
  if (stored === undefined) await refuseTooMany(dependencies, descriptor, name);
  if (isWebhookKind(descriptor)) {
    const { admitWebhooks } = await import('./webhooks.ts');
    return admitWebhooks(descriptor, next, dependencies.webhooks !== undefined);
  }
  if (target.subresource !== '' || jsonEqual(next.spec ?? {}, stored?.spec ?? {})) return [];
  const isMutating = descriptor === mutatingadmissionpolicies;
  if (!isMutating && descriptor !== validatingadmissionpolicies) {
    await requireRefAccess(dependencies, call, next);
    return [];
  }
  const { spec = {} }: KubeMutatingAdmissionPolicy = next;
  const { compilePolicy } = await import('../../../shared/admission/compile-policy.ts');
  const { causes } = compilePolicy(spec, isMutating);
  if (causes.length > 0) throw status.invalid(descriptor, name, causes);
  if (spec.paramKind !== undefined) await requireParamAccess(dependencies, call, name, spec.paramKind);
  return isForNodeLeases(spec) ? [NODE_LEASES] : [];
}

export async function withTypeChecking(dependencies: ServeDependencies, policy: KubeObject): Promise<KubeObject> {
  const types = await import('../../../shared/admission/type-warnings.ts');
  return types.withTypeChecking(policy, {
    descriptorOf: dependencies.descriptorOf,
    paramKindOf: (paramKind) => paramDescriptor(dependencies, paramKind),
    schemaOf: ({ custom, group, version, kind }) => custom?.schema ?? schemaOf(apiVersionOf({ group, version }), kind),
    objectTextMax: CLIENT_TEXT_MAX,
  });
}

async function refuseTooMany(
  { storageOf }: ServeDependencies,
  descriptor: ResourceDescriptor,
  name: string,
): Promise<void> {
  const { items } = await storageOf(descriptor).list({ namespace: '', limit: POLICIES_MAX });
  if (items.length < POLICIES_MAX) return;
  throw status.forbidden(
    descriptor,
    name,
    `there are ${POLICIES_MAX} ${descriptor.resource}, which is the most allowed`,
  );
}

/** What a policy shows of its parameters, its author could read (pkg/registry/admissionregistration, authz.go). */
async function requireParamAccess(
  dependencies: ServeDependencies,
  call: Call,
  name: string,
  paramKind: ParamKind,
): Promise<void> {
  if (await mayRead(dependencies, call, paramKind, {})) return;
  const { apiVersion, kind } = paramKind;
  const all = `all objects of the paramKind (apiVersion=${apiVersion}, kind=${kind})`;
  throw status.forbidden(call.descriptor, name, `user ${call.user.username} must have "get" permission on ${all}`);
}

/** The author of a binding chooses which objects are shown. */
async function requireRefAccess(dependencies: ServeDependencies, call: Call, next: KubeObject): Promise<void> {
  const { policyName = '', paramRef }: NonNullable<KubeMutatingAdmissionPolicyBinding['spec']> = next.spec ?? {};
  if (paramRef === undefined) return;
  const isMutating = call.descriptor === mutatingadmissionpolicybindings;
  const ofPolicies = dependencies.storageOf(isMutating ? mutatingadmissionpolicies : validatingadmissionpolicies);
  const policy: KubeMutatingAdmissionPolicy | undefined = await ofPolicies.get('', policyName);
  if (await mayRead(dependencies, call, policy?.spec?.paramKind, paramRef)) return;
  const why = `user ${call.user.username} does not have "get" permission on the object referenced by paramRef`;
  throw status.forbidden(call.descriptor, next.metadata.name ?? '', why);
}

/** @param paramKind undefined: that of a policy that may be created later. Likewise a kind that is not served now */
async function mayRead(
  { authorizer, customs }: ServeDependencies,
  { user, nowMs }: Call,
  paramKind: ParamKind | undefined,
  { namespace = '', name = '' }: ParamRef,
): Promise<boolean> {
  const { group } = paramKind === undefined ? ANY : groupAndVersionOf(paramKind);
  const { resource } = (paramKind && (await paramDescriptor({ customs }, paramKind))) ?? ANY;
  const question = { verb: 'get', group, resource, subresource: '', namespace, name };
  return (await authorizer.authorize(user, question, nowMs)).allowed;
}

const ANY = { group: '*', resource: '*' };

const NODE_LEASES = `renewals of Leases in ${LEASE_NAMESPACE} are heartbeats: no policy is evaluated for them`;

function isForNodeLeases({ matchConstraints = {} }: NonNullable<KubeMutatingAdmissionPolicy['spec']>): boolean {
  return matchesRules(matchConstraints, renewalOfNode, false);
}
