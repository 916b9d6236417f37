/**
 * ResourceQuota admission: what an object uses is added to the quotas of its namespace in the transaction that writes
 * the object. Each quota must have the version that was read, so two objects never use the same last unit.
 */
import { defined } from '../../../shared/defined.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { checkQuota, isQuotaChange } from '../../../shared/kinds/quotas/quota.ts';
import { resourcequotas } from '../../../shared/kinds/quotas/serve.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import type { ApiDependencies } from '../dependencies.ts';

export interface QuotaChange {
  readonly object: KubeObject;
  /** The stored object; undefined for a creation. */
  readonly old: KubeObject | undefined;
  readonly nowMs: number;
  /** The stored object changes what it uses. */
  readonly changesUse?: boolean;
}

/** The quotas to write together with the object. @throws StatusError 403 when a quota is exceeded */
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
