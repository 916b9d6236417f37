/** Admission of policies and webhooks themselves: expressions are compiled, and parameters must be readable. */

import type { Call } from '../../../../shared/api/call.ts';
import { POLICIES_MAX } from '../../../../shared/kinds/admission-policies/policy-memory.ts';
import {
  admissionKinds,
  mutatingadmissionpolicies,
  mutatingwebhookconfigurations,
  validatingadmissionpolicies,
  validatingwebhookconfigurations,
} from '../../../../shared/kinds/admission-policies/serve.ts';
import type { ResourceDescriptor } from '../../../../shared/kinds/descriptor.ts';
import { LEASE_NAMESPACE } from '../../../../shared/kinds/leases/resource.ts';
import type { KubeMutatingAdmissionPolicy, KubeObject, ParamKind } from '../../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../../shared/kubernetes/json.ts';
import * as status from '../../../../shared/kubernetes/status.ts';
import type { ServeDependencies } from '../../dependencies.ts';
import { paramDescriptor } from './admit-by-policies.ts';
import { matchesRules } from './match.rule.ts';
import { renewalOfNode } from './node-renewal.ts';

const isWebhookKind = (descriptor: ResourceDescriptor): boolean =>
  descriptor === validatingwebhookconfigurations || descriptor === mutatingwebhookconfigurations;

export const isAdmissionKind = (descriptor: ResourceDescriptor): boolean => admissionKinds.includes(descriptor);

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
    const { admitWebhooks } = await import('../webhooks.ts');
    return admitWebhooks(descriptor, next, dependencies.webhooks !== undefined);
  }
  const isMutating = descriptor === mutatingadmissionpolicies;
  if (!isMutating && descriptor !== validatingadmissionpolicies) return [];
  if (target.subresource !== '' || jsonEqual(next.spec ?? {}, stored?.spec ?? {})) return [];
  const { spec = {} }: KubeMutatingAdmissionPolicy = next;
  const { compilePolicy } = await import('./compile-policy.ts');
  const { causes } = compilePolicy(spec, isMutating);
  if (causes.length > 0) throw status.invalid(descriptor, name, causes);
  if (spec.paramKind !== undefined) await requireParamAccess(dependencies, call, name, spec.paramKind);
  return isForNodeLeases(spec) ? [NODE_LEASES] : [];
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
  { authorizer }: ServeDependencies,
  { descriptor, user, nowMs }: Call,
  name: string,
  paramKind: ParamKind,
): Promise<void> {
  const params = paramDescriptor(paramKind);
  // A kind that is not served has no objects to read.
  if (params === undefined) return;
  const { group, resource } = params;
  const question = { verb: 'get', group, resource, subresource: '', namespace: '', name: '' };
  if ((await authorizer.authorize(user, question, nowMs)).allowed) return;
  const { apiVersion, kind } = paramKind;
  const all = `all objects of the paramKind (apiVersion=${apiVersion}, kind=${kind})`;
  throw status.forbidden(descriptor, name, `user ${user.username} must have "get" permission on ${all}`);
}

const NODE_LEASES = `renewals of Leases in ${LEASE_NAMESPACE} are heartbeats: no policy is evaluated for them`;

function isForNodeLeases({ matchConstraints = {} }: NonNullable<KubeMutatingAdmissionPolicy['spec']>): boolean {
  return matchesRules(matchConstraints, renewalOfNode, false);
}
