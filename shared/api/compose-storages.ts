/** The storage of each resource: most are plain objects, some have their own rows or a computed status. */

import { type Policies, policyCache } from '../access/policy-cache.ts';
import { alwaysEmptyStorages } from '../kinds/always-empty/storage.ts';
import { clusterObjects } from '../kinds/cluster-objects.ts';
import { clusterStatusStorages } from '../kinds/cluster-statuses/storage.ts';
import { customResourceStorage } from '../kinds/custom-resources/storage.ts';
import { type DefinitionCatalog, definitionCatalog } from '../kinds/customresourcedefinitions/catalog.ts';
import { type DefinitionSections, definitionSections } from '../kinds/customresourcedefinitions/sections.ts';
import { definitionStorages } from '../kinds/customresourcedefinitions/storage.ts';
import { decisionStorages } from '../kinds/decisions/storage.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { identityStorages } from '../kinds/identities/storage.ts';
import { leaseStorages } from '../kinds/leases/storage.ts';
import { noAuthorities } from '../kinds/namespaces/contents.ts';
import { namespaceStorages } from '../kinds/namespaces/storage.ts';
import { metricsStorages } from '../kinds/node-metrics/storage.ts';
import { nodeStorages } from '../kinds/nodes/storage.ts';
import { type Budgets, budgetStorages, budgetsOver } from '../kinds/poddisruptionbudgets/storage.ts';
import { podStorages } from '../kinds/pods/storage.ts';
import { priorityClassStorages } from '../kinds/priorityclasses/storage.ts';
import { type NamespacePolicies, namespacePolicies } from '../kinds/quotas/namespace-policies.ts';
import { quotaStorages } from '../kinds/quotas/storage.ts';
import { poddisruptionbudgets, pods, storedAs } from '../kinds/registry.ts';
import { defaultBindings, defaultRoles } from '../kinds/roles/default-policies.ts';
import { clusterrolebindings, clusterroles, rolebindings, roles } from '../kinds/roles/serve.ts';
import { roleStorages } from '../kinds/roles/storage.ts';
import { serviceStorages } from '../kinds/services/storage.ts';
import { silenceHistogramStorages } from '../kinds/silence-histograms/storage.ts';
import { storageClassStorages } from '../kinds/storageclasses/storage.ts';
import type { StorageContext, StorageOptions } from './kind-storage.ts';
import { objectStorage } from './object-storage.ts';
import type { ResourceStorage } from './resource-storage.ts';

const STORAGES = new Map([
  ...definitionStorages,
  ...alwaysEmptyStorages,
  ...budgetStorages,
  ...clusterStatusStorages,
  ...decisionStorages,
  ...identityStorages,
  ...leaseStorages,
  ...metricsStorages,
  ...namespaceStorages,
  ...nodeStorages,
  ...podStorages,
  ...priorityClassStorages,
  ...quotaStorages,
  ...roleStorages,
  ...serviceStorages,
  ...silenceHistogramStorages,
  ...storageClassStorages,
]);

export interface Storages {
  /** The storage of a resource, made on first use. Two resources that serve the same objects share one. */
  readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage;
  readonly budgets: Budgets;
  /** Roles and bindings, in memory. */
  readonly policies: Policies;
  readonly namespacePolicies: NamespacePolicies;
  readonly definitions: DefinitionCatalog;
  readonly sections: DefinitionSections;
}

export function composeStorages(options: StorageOptions): Storages {
  const { changes, clock, random, apiAuthorities = noAuthorities, makesInitialObjects = true } = options;
  const objects = clusterObjects(options);
  const plain: StorageContext['plain'] = (descriptor, more = {}) =>
    objectStorage(descriptor, { objects, changes, clock, ...more });
  const budgets = budgetsOver(plain(poddisruptionbudgets), plain(pods), objects.get);
  const policies = policiesOf(plain, options);
  const ofNamespaces = namespacePolicies(objects, clock);
  const definitions = definitionCatalog({ items: options.items, clock, objects });
  const sections = definitionSections(options.items);
  // Descriptors of custom resources come and go.
  const storages = new WeakMap<ResourceDescriptor, ResourceStorage>();
  const storageOf = (served: ResourceDescriptor): ResourceStorage => {
    const descriptor = storedAs(served);
    const storage = storages.get(descriptor) ?? made(descriptor);
    storages.set(descriptor, storage);
    return storage;
  };
  const made = (descriptor: ResourceDescriptor): ResourceStorage => {
    if (descriptor.custom !== undefined) return customResourceStorage(descriptor, descriptor.custom, context);
    return STORAGES.get(descriptor)?.(descriptor, context) ?? plain(descriptor);
  };
  const context: StorageContext = {
    ...options,
    makesInitialObjects,
    plain,
    storageOf,
    newObject: () => ({ nowMs: clock.nowMs(), uuid: random.uuid, apiAuthorities }),
    versionOf: async ({ resource }) => String(await changes.currentVersion(resource)),
    definitions,
    sections,
    budgets: budgets.storage,
    policies,
    namespacePolicies: ofNamespaces,
  };
  return { storageOf, budgets, policies, namespacePolicies: ofNamespaces, definitions, sections };
}

function policiesOf(plain: StorageContext['plain'], { changes }: StorageOptions): Policies {
  const stored = {
    clusterroles: plain(clusterroles),
    clusterrolebindings: plain(clusterrolebindings),
    roles: plain(roles),
    rolebindings: plain(rolebindings),
  };
  return policyCache({ changes, defaultRoles, defaultBindings, list: (kind, query) => stored[kind].list(query) });
}
