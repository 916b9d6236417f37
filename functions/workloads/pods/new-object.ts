/** What a POST asks about a new object of a controller: policies and webhooks, and the quotas of its namespace. */

import type { AdmissionWait, Creator, MadeObject } from '../../../shared/admission/created-object.ts';
import { defined } from '../../../shared/defined.ts';
import { checkQuota } from '../../../shared/kinds/quotas/quota.ts';
import type { CountedResource } from '../../../shared/kinds/quotas/usage.ts';
import type { KubeObject, KubeResourceQuota } from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { invalidObject, LOST, lostByAdmission } from './created-objects.ts';
import { refOfObject } from './owner.ts';

/** Until a refused creation is tried again: what refused it, such as a quota, may permit it later. Milliseconds. */
export const REFUSED_RETRY_MS = 60_000;

export interface NewObject extends CountedResource {
  readonly creator: Creator;
  /** Before defaults: some of these follow from the uid. */
  readonly given: KubeObject;
  /** With the defaults of a POST. */
  readonly prepare: (changed: KubeObject) => KubeObject;
  /** What its owner compares, by fields: admission may not change it. */
  readonly compared?: (object: KubeObject) => Readonly<Record<string, unknown>>;
}

/** Whether one object that is no pod may be created. `quotas`: to write in the same commit. */
export type Permission =
  | { readonly kind: 'permitted'; readonly object: KubeObject; readonly quotas: readonly ObjectWrite[] }
  | { readonly kind: 'refused'; readonly message: string; readonly retryMs: number }
  | AdmissionWait;

export async function permitted(
  dependencies: Pick<WorkloadDependencies, 'admitObjects' | 'namespacePolicies' | 'clock'>,
  { creator, group, resource, ...of }: NewObject,
): Promise<Permission> {
  const prepared = of.prepare(of.given);
  const made: MadeObject = {
    kind: 'made',
    object: prepared,
    given: of.given,
    complete(changed) {
      const object = of.prepare(changed);
      const lost = lostByAdmission(prepared, object) ?? lostField(of.compared, prepared, object);
      if (lost === undefined) return { ...made, object };
      const { kind = '' } = prepared;
      return invalidObject(group === '' ? kind : `${kind}.${group}`, prepared, lost, LOST);
    },
  };
  const admission = await dependencies.admitObjects(creator, { group, resource }, [made]);
  if (admission.kind === 'waiting') return admission;
  const [outcome = made] = admission.objects;
  const retryMs = REFUSED_RETRY_MS;
  if (outcome.kind === 'refused') return { retryMs, ...outcome };
  const { object } = outcome;
  const { namespace = '' } = object.metadata;
  const charging = { group, resource, namespace, nowMs: dependencies.clock.nowMs() };
  const { quotas, refusal } = await chargedObjects(dependencies, charging, [object]);
  return refusal === undefined ? { kind: 'permitted', object, quotas } : { kind: 'refused', message: refusal, retryMs };
}

function lostField(compared: NewObject['compared'], object: KubeObject, changed: KubeObject): string | undefined {
  const fields = compared?.(changed) ?? {};
  return Object.entries(compared?.(object) ?? {}).find(([field, value]) => !jsonEqual(value, fields[field]))?.[0];
}

export interface ChargedObjects<Created extends KubeObject> {
  /** The first of the objects: all that the quotas permit. */
  readonly permitted: readonly Created[];
  /** Quotas to write in the commit that creates these objects. */
  readonly quotas: readonly ObjectWrite[];
  /** Why the next object is not permitted. Absent: all are. */
  readonly refusal?: string;
}

/**
 * The new objects of one resource that the quotas of their namespace permit, and the quotas with their use. A commit
 * with these is refused if another creation was charged meanwhile, and the caller decides again.
 */
export async function chargedObjects<Created extends KubeObject>(
  { namespacePolicies }: Pick<WorkloadDependencies, 'namespacePolicies'>,
  of: CountedResource & { readonly namespace: string; readonly nowMs: number },
  objects: readonly Created[],
): Promise<ChargedObjects<Created>> {
  if (objects.length === 0) return { permitted: [], quotas: [] };
  const { group, resource, nowMs } = of;
  const stored = await namespacePolicies.quotas(of.namespace);
  let current: readonly KubeResourceQuota[] = stored;
  const permitted: Created[] = [];
  let refusal: string | undefined;
  for (const object of objects) {
    const checks = current.map((quota) => checkQuota(quota, { group, resource, object, nowMs }));
    const refused = checks.flatMap((check) => (check.kind === 'refused' ? [check.why] : []));
    if (refused[0] !== undefined) {
      const kind = group === '' ? resource : `${resource}.${group}`;
      refusal = `${kind} "${object.metadata.name ?? ''}" is forbidden: ${refused[0]}`;
      break;
    }
    current = current.map((quota, index) => {
      const check = checks[index];
      return check?.kind === 'charged' ? check.quota : quota;
    });
    permitted.push(object);
  }
  const quotas = stored.flatMap((previous, index): ObjectWrite[] => {
    const object = current[index];
    return object === undefined || object === previous
      ? []
      : [{ kind: 'update', ref: refOfObject('resourcequotas', previous), object, previous }];
  });
  return { permitted, quotas, ...defined({ refusal }) };
}
