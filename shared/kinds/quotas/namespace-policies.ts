/**
 * ResourceQuotas and LimitRanges of a namespace, for the admission of its objects.
 *
 * Cost: a query of one read unit per kind for each admitted object. That a namespace has none is remembered for
 * ABSENT_MS, so a namespace without quotas costs at most one query per process and ABSENT_MS. A new quota is enforced
 * that much later by other processes. Its controller counts once more after this time.
 */

import type { Clock } from '../../clock.ts';
import type { ObjectStore } from '../../store/object-store.ts';
import type { KubeLimitRange, KubeObject, KubeResourceQuota } from '../types.ts';

/** How long the absence of quotas or LimitRanges is remembered. Milliseconds. */
export const ABSENT_MS = 2_000;
/** Namespaces in memory. The least recent one is dropped first. */
const NAMESPACES_MAX = 1_000;
/** Quotas or LimitRanges of one namespace that are read. */
const OBJECTS_MAX = 100;

export interface NamespacePolicies {
  quotas(namespace: string): Promise<readonly KubeResourceQuota[]>;
  limitRanges(namespace: string): Promise<readonly KubeLimitRange[]>;
  /** After this process created one of them. */
  forget(namespace: string): void;
}

export function namespacePolicies(objects: Pick<ObjectStore, 'list'>, clock: Pick<Clock, 'nowMs'>): NamespacePolicies {
  /** By kind and namespace: when the absence was read. */
  const absentSince = new Map<string, number>();

  async function read(resource: string, namespace: string): Promise<readonly KubeObject[]> {
    const key = `${resource}/${namespace}`;
    const nowMs = clock.nowMs();
    const sinceMs = absentSince.get(key);
    if (sinceMs !== undefined && nowMs - sinceMs < ABSENT_MS) return [];
    absentSince.delete(key);
    const { objects: found } = await objects.list({ resource, namespace, limit: OBJECTS_MAX });
    if (found.length > 0) return found;
    absentSince.set(key, nowMs);
    if (absentSince.size > NAMESPACES_MAX) absentSince.delete(absentSince.keys().next().value as string);
    return [];
  }

  return {
    quotas: (namespace) => read('resourcequotas', namespace),
    limitRanges: (namespace) => read('limitranges', namespace),
    forget(namespace) {
      absentSince.delete(`resourcequotas/${namespace}`);
      absentSince.delete(`limitranges/${namespace}`);
    },
  };
}
