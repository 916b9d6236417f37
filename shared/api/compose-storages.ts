/** The storage of each resource: most are plain objects, some have their own rows or a computed status. */

import { type Policies, policyCache } from '../access/policy-cache.ts';
import { defined } from '../defined.ts';
import { type AdmissionPolicies, admissionPolicies } from '../kinds/admission-policies/policy-memory.ts';
import {
  mutatingadmissionpolicies,
  mutatingadmissionpolicybindings,
  mutatingwebhookconfigurations,
  validatingadmissionpolicies,
  validatingadmissionpolicybindings,
  validatingwebhookconfigurations,
} from '../kinds/admission-policies/serve.ts';
import { admissionPolicyStorages } from '../kinds/admission-policies/storage.ts';
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
  ...admissionPolicyStorages,
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
  /** Admission policies, in memory. */
  readonly admissionPolicies: AdmissionPolicies;
  readonly namespacePolicies: NamespacePolicies;
  readonly definitions: DefinitionCatalog;
  readonly sections: DefinitionSections;
}

export function composeStorages(options: StorageOptions): Storages {
  const { changes, clock, random, apiAuthorities = noAuthorities, apiAddress, makesInitialObjects = true } = options;
  const objects = clusterObjects(options);
  const plain: StorageContext['plain'] = (descriptor, more = {}) =>
    objectStorage(descriptor, { objects, changes, clock, ...more });
  const budgets = budgetsOver(plain(poddisruptionbudgets), plain(pods), objects.get);
  const policies = policiesOf(plain, options);
  const ofAdmission = admissionPoliciesOf(plain, options);
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
    newObject: () => ({ nowMs: clock.nowMs(), uuid: random.uuid, apiAuthorities, ...defined({ apiAddress }) }),
    versionOf: async ({ resource }) => String(await changes.currentVersion(resource)),
    definitions,
    sections,
    budgets: budgets.storage,
    policies,
    admissionPolicies: ofAdmission,
    namespacePolicies: ofNamespaces,
  };
  return {
    storageOf,
    budgets,
    policies,
    admissionPolicies: ofAdmission,
    namespacePolicies: ofNamespaces,
    definitions,
    sections,
  };
}

function admissionPoliciesOf(plain: StorageContext['plain'], { changes }: StorageOptions): AdmissionPolicies {
  const stored = {
    validatingadmissionpolicies: plain(validatingadmissionpolicies),
    validatingadmissionpolicybindings: plain(validatingadmissionpolicybindings),
    mutatingadmissionpolicies: plain(mutatingadmissionpolicies),
    mutatingadmissionpolicybindings: plain(mutatingadmissionpolicybindings),
    validatingwebhookconfigurations: plain(validatingwebhookconfigurations),
    mutatingwebhookconfigurations: plain(mutatingwebhookconfigurations),
  };
  return admissionPolicies({ changes, list: (kind, query) => stored[kind].list(query) });
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
