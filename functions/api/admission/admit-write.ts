/** Which admission checks a request passes before it writes, by its resource and its user. */

import { NODES_GROUP } from '../../../shared/access/authorize.ts';
import { admitByPolicies, type PolicyAdmission } from '../../../shared/admission/admit-by-policies.ts';
import type { AdmittedCall } from '../../../shared/admission/admitted-write.ts';
import type { Call } from '../../../shared/api/call.ts';
import { defined } from '../../../shared/defined.ts';
import { PLANNED_SILENCE_SECONDS_MAX, promiseFault } from '../../../shared/fleet/nodes/planned-silence.ts';
import { admissionKinds, validatingadmissionpolicies } from '../../../shared/kinds/admission-policies/serve.ts';
import { certificatesigningrequests } from '../../../shared/kinds/certificates/serve.ts';
import { customresourcedefinitions } from '../../../shared/kinds/customresourcedefinitions/serve.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { creationEffect, effectOf } from '../../../shared/kinds/effects.ts';
import { classNameOf, grows } from '../../../shared/kinds/persistentvolumes/binding.rule.ts';
import { persistentvolumeclaims } from '../../../shared/kinds/persistentvolumes/serve.ts';
import { checkQuota, isQuotaChange } from '../../../shared/kinds/quotas/quota.ts';
import { resourcequotas } from '../../../shared/kinds/quotas/serve.ts';
import { nodes, priorityclasses } from '../../../shared/kinds/registry.ts';
import { clusterrolebindings, clusterroles, rolebindings, roles } from '../../../shared/kinds/roles/serve.ts';
import { storageclasses } from '../../../shared/kinds/storageclasses/serve.ts';
import type { KubeObject, KubePersistentVolumeClaim, KubeStorageClass } from '../../../shared/kinds/types.ts';
import { invalidValue } from '../../../shared/kubernetes/causes.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import type { ApiDependencies, ServeDependencies } from '../dependencies.ts';
import type { WriteOptions } from '../verbs/write-options.ts';
import { admitPriorityClass } from './admit-creation.ts';
import { definitionAdmission } from './admit-definition.ts';
import { admitPolicy, withTypeChecking } from './admit-policy.ts';
import { signingRequestAdmission } from './admit-signing-request.ts';
import { escalationCheck } from './escalation.ts';
import { nodeRestriction, type RestrictedVerb } from './restrict-node.ts';

/** A user may only grant rules that the user holds. */
const GRANTING_KINDS: readonly ResourceDescriptor[] = [roles, clusterroles, rolebindings, clusterrolebindings];

type Admission = Pick<WriteOptions, 'admit' | 'admitStored' | 'complete'>;

/** What a write passes, and what its answer warns of afterwards. */
export interface WriteAdmission extends Admission, Pick<PolicyAdmission, 'mutate'> {
  readonly warnings: () => readonly string[];
}

const isDryRun = ({ request }: Call): boolean => request.query.get('dryRun') === 'All';

/** Refusals that depend on stored objects, and the policies of the cluster: they see what all others let pass. */
export function admitWrite(
  dependencies: ServeDependencies,
  call: Call,
  verb: RestrictedVerb,
  { kind, dryRun = isDryRun(call) }: Partial<Pick<AdmittedCall, 'kind' | 'dryRun'>> = {},
): WriteAdmission {
  const restricted = admitRestricted(dependencies, call, verb);
  const policies = admitByPolicies(dependencies, { ...call, dryRun, ...defined({ kind }) });
  let ofPolicy: readonly string[] = [];
  let ofKind: readonly string[] = [];
  return {
    ...restricted,
    ...(call.descriptor === validatingadmissionpolicies && {
      complete: (next: KubeObject) => withTypeChecking(dependencies, next),
    }),
    mutate: policies.mutate,
    async admit(next, stored) {
      await restricted.admit?.(next, stored);
      const isCreated = next !== undefined && stored === undefined;
      ofKind = isCreated ? await admitEffect(dependencies, call, next) : [];
      if (admissionKinds.includes(call.descriptor) && next !== undefined) {
        ofPolicy = await admitPolicy(dependencies, call, next, stored);
      }
      await policies.admit(next, stored);
    },
    warnings: () => [...ofPolicy, ...policies.warnings(), ...ofKind],
  };
}

/** The policies of the cluster alone, for a body that is no object of its resource. */
export const admitBody = (
  dependencies: ServeDependencies,
  call: Call,
  body: KubeObject,
  { kind, dryRun = isDryRun(call) }: { readonly kind: NonNullable<AdmittedCall['kind']>; readonly dryRun?: boolean },
): Promise<void> =>
  admitByPolicies(dependencies, { ...call, dryRun, operation: 'CREATE', kind }).admit(body, undefined);

/** Refusals that depend on stored objects. */
export function admitRestricted(dependencies: ServeDependencies, call: Call, verb: RestrictedVerb): Admission {
  const admission = admissionOf(dependencies, call, verb);
  return {
    ...admission,
    async admit(next, stored) {
      // A creation. A deletion has a stored object.
      if (stored === undefined && verb !== 'create') await requireCreate(dependencies, call);
      await admission.admit?.(next, stored);
    },
  };
}

/** Objects that nothing acts on: refused by `unenforcedKinds`, or stored. @returns warnings @throws StatusError 403 */
async function admitEffect(
  { unenforcedKinds, signsCertificates, policyEnforcers }: ServeDependencies,
  { descriptor }: Call,
  { metadata: { name = '' } }: KubeObject,
): Promise<readonly string[]> {
  const nodes = effectOf(descriptor)?.byServiceReaders === undefined ? undefined : await policyEnforcers();
  const { warning, unenforced } = creationEffect(descriptor, { signsCertificates, ...defined({ nodes }) });
  if (unenforced !== undefined && unenforcedKinds === 'refuse') {
    const why = `the policy has unenforcedKinds: refuse, and nothing acts on it: ${unenforced}`;
    throw status.forbidden(descriptor, name, why);
  }
  return warning === undefined ? [] : [warning];
}

/** An update or an apply that creates needs the verb `create` too, as upstream. */
async function requireCreate({ authorizer }: ServeDependencies, { target, user, nowMs }: Call): Promise<void> {
  const access = await authorizer.authorize(user, { verb: 'create', ...target }, nowMs);
  if (access.allowed) return;
  const { subresource, namespace, name } = target;
  const denied = { user: user.username, verb: 'create', target, subresource, namespace, name };
  throw status.accessDenied(denied, access.reason);
}

/** NodeRestriction, and the bounds of a promise of silence. */
function nodeAdmission(dependencies: ServeDependencies, call: Call, verb: RestrictedVerb): Admission {
  const restriction = nodeRestriction(dependencies, call, verb);
  const { user, nowMs, descriptor } = call;
  const isNode = user.groups.includes(NODES_GROUP);
  const maxSeconds = isNode ? dependencies.maxPlannedSilenceSeconds : PLANNED_SILENCE_SECONDS_MAX;
  return {
    ...restriction,
    async admit(next, stored) {
      await restriction.admit?.(next, stored);
      if (next === undefined) return;
      const fault = promiseFault(next.metadata.annotations, stored?.metadata.annotations, { nowMs, maxSeconds });
      if (fault === undefined) return;
      const cause = invalidValue(`metadata.annotations[${fault.annotation}]`, fault.value, fault.rule);
      throw status.invalid(descriptor, next.metadata.name ?? '', [cause]);
    },
  };
}

/**
 * A claim may ask for more only if its class allows it.
 * Source: plugin/pkg/admission/storage/persistentvolume/resize/admission.go.
 */
const claimAdmission = (dependencies: ServeDependencies, { descriptor }: Call): Admission => ({
  async admit(next, stored) {
    if (next === undefined || stored === undefined || !grows(next, stored)) return;
    const refuse = (why: string) => status.forbidden(descriptor, next.metadata.name ?? '', why);
    const claim: KubePersistentVolumeClaim = stored;
    if (claim.status?.phase !== 'Bound') throw refuse('Only bound persistent volume claims can be expanded');
    const name = classNameOf(claim);
    const storage: KubeStorageClass | undefined =
      name === '' ? undefined : await dependencies.storageOf(storageclasses).get('', name);
    if (storage?.allowVolumeExpansion === true) return;
    throw refuse(
      'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
    );
  },
});

/** NodeRestriction skips priority classes, because no node may write them. */
function admissionOf(dependencies: ServeDependencies, call: Call, verb: RestrictedVerb): Admission {
  const { descriptor, target } = call;
  if (
    GRANTING_KINDS.includes(descriptor) ||
    descriptor === certificatesigningrequests ||
    descriptor === customresourcedefinitions
  ) {
    const { admit, ...restriction } = nodeRestriction(dependencies, call, verb);
    const check =
      descriptor === customresourcedefinitions
        ? definitionAdmission(call)
        : GRANTING_KINDS.includes(descriptor)
          ? escalationCheck(dependencies.authorizer, call)
          : signingRequestAdmission(dependencies, call);
    return {
      ...restriction,
      async admit(next, stored) {
        await admit?.(next, stored);
        await check(next, stored);
      },
    };
  }
  if (descriptor.resource === nodes.resource) return nodeAdmission(dependencies, call, verb);
  if (descriptor === persistentvolumeclaims && target.subresource === '' && verb !== 'delete') {
    const restriction = nodeRestriction(dependencies, call, verb);
    const { admit } = claimAdmission(dependencies, call);
    return {
      ...restriction,
      async admit(next, stored) {
        await restriction.admit?.(next, stored);
        await admit?.(next, stored);
      },
    };
  }
  if (descriptor !== priorityclasses) return nodeRestriction(dependencies, call, verb);
  return { admit: (next) => admitPriorityClass(dependencies, target.name, next) };
}

export interface QuotaChange {
  readonly object: KubeObject;
  /** The stored object; undefined for a creation. */
  readonly old: KubeObject | undefined;
  readonly nowMs: number;
  /** The stored object changes what it uses. */
  readonly changesUse?: boolean;
}

/**
 * The quotas to write together with the object: ResourceQuota admission adds what it uses in the transaction that
 * writes it. Each quota must have the version that was read, so two objects never use the same last unit.
 *
 * @throws StatusError 403 when a quota is exceeded
 */
export async function chargedQuotas(
  { namespacePolicies }: Pick<ApiDependencies, 'namespacePolicies'>,
  descriptor: ResourceDescriptor,
  { object, old, nowMs, changesUse = false }: QuotaChange,
): Promise<readonly ObjectWrite[]> {
  const { group, resource } = descriptor;
  if (!descriptor.namespaced || !isQuotaChange({ group, resource }, old === undefined || changesUse)) return [];
  const quotas = await namespacePolicies.quotas(object.metadata.namespace ?? '');
  return quotas.flatMap((previous): ObjectWrite[] => {
    const check = checkQuota(previous, { group, resource, object, nowMs, ...defined({ old }) });
    if (check.kind === 'refused') throw status.forbidden(descriptor, object.metadata.name ?? '', check.why);
    if (check.kind === 'uncounted') return [];
    const { namespace = '', name = '' } = previous.metadata;
    const ref = { resource: resourcequotas.resource, namespace, name };
    return [{ kind: 'update', ref, object: check.quota, previous }];
  });
}
