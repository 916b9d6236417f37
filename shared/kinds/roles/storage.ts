/**
 * The storage of roles and bindings. Reads add the default objects of every cluster, and compute the rules of
 * aggregated ClusterRoles. Each write is reported to the policies in memory.
 *
 * Cost: reading a ClusterRole that is aggregated needs all ClusterRoles, from memory or by a list.
 */

import type { Policies } from '../../access/policy-cache.ts';
import type { KindStorage } from '../../api/kind-storage.ts';
import { listKeyOf as keyOf, type ListPage, type ListQuery, type ResourceStorage } from '../../api/resource-storage.ts';
import type { Clock } from '../../clock.ts';
import type { KubeClusterRole, KubeObject } from '../types.ts';
import { effectiveRules } from './aggregation.ts';
import { defaultBindings, defaultRoles } from './default-policies.ts';
import { clusterrolebindings, clusterroles, rolebindings, roles } from './serve.ts';

/** Reports writes to the policies in memory. */
export function reportingStorage(storage: ResourceStorage, policies: Pick<Policies, 'changed'>): ResourceStorage {
  const reported = async <T>(write: Promise<T>): Promise<T> => {
    try {
      return await write;
    } finally {
      policies.changed();
    }
  };
  return {
    ...storage,
    create: (object, along) => reported(storage.create(object, along)),
    update: (next, old, along) => reported(storage.update(next, old, along)),
    remove: (old, along) => reported(storage.remove(old, along)),
  };
}

/**
 * A storage of cluster-scoped objects with some that are not stored. A stored object of the same name is hidden. A
 * creation with such a name is a conflict.
 *
 * @param fixed ordered by name
 */
export function withFixedObjects(storage: ResourceStorage, fixed: readonly KubeObject[]): ResourceStorage {
  const byName = new Map(fixed.map((object) => [object.metadata.name ?? '', object]));
  const isStored = (object: KubeObject): boolean => !byName.has(object.metadata.name ?? '');
  return {
    ...storage,
    get: async (namespace, name) => byName.get(name) ?? storage.get(namespace, name),
    async list(query: ListQuery): Promise<ListPage> {
      const page = await storage.list(query);
      const { continueAfter = '' } = query;
      const isInPage = (key: string): boolean => key > continueAfter && (page.next === undefined || key <= page.next);
      const all = [...page.items.filter(isStored), ...fixed.filter((object) => isInPage(keyOf(object)))];
      const sorted = all.sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
      const items = sorted.slice(0, query.limit);
      const next = items.length < sorted.length ? keyOf(items.at(-1) as KubeObject) : page.next;
      return next === undefined ? { items } : { items, next };
    },
    create: async (object, along) => (isStored(object) ? storage.create(object, along) : { kind: 'conflict' }),
  };
}

/** ClusterRoles with the rules that apply for them. */
export function aggregatingStorage(
  storage: ResourceStorage,
  { policies, clock }: { readonly policies: Pick<Policies, 'clusterRoles'>; readonly clock: Clock },
): ResourceStorage {
  const isAggregated = (object: KubeClusterRole | undefined): boolean => object?.aggregationRule !== undefined;
  async function composed<T extends KubeObject | undefined>(objects: readonly T[]): Promise<readonly T[]> {
    if (!objects.some(isAggregated)) return objects;
    const all = await policies.clusterRoles(clock.nowMs());
    return objects.map(
      (object) =>
        (isAggregated(object) ? { ...object, rules: effectiveRules(object as KubeObject, all) } : object) as T,
    );
  }
  return {
    ...storage,
    get: async (namespace, name) => (await composed([await storage.get(namespace, name)]))[0],
    async list(query) {
      const page = await storage.list(query);
      return { ...page, items: await composed(page.items) };
    },
  };
}

const reporting: KindStorage[1] = (descriptor, { plain, policies }) => reportingStorage(plain(descriptor), policies);

export const roleStorages: readonly KindStorage[] = [
  [roles, reporting],
  [rolebindings, reporting],
  [
    clusterroles,
    (descriptor, context) =>
      aggregatingStorage(withFixedObjects(reporting(descriptor, context), defaultRoles), context),
  ],
  [clusterrolebindings, (descriptor, context) => withFixedObjects(reporting(descriptor, context), defaultBindings)],
];
