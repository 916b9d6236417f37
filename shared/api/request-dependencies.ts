/**
 * What both functions of the API need: who asks, whether they may, and the storage of each resource. Most are plain
 * objects, some have their own rows or a computed status.
 */

import type { AuditTrail } from '../access/audit.ts';
import type { Authenticator } from '../access/authenticator.ts';
import { authorizer, nodeGraph } from '../access/authorizer.ts';
import { type Policies, policyCache } from '../access/policy-cache.ts';
import { refusalsAdded } from '../access/refusal-store.ts';
import { refusedRequests } from '../access/refused-requests.ts';
import { type RequestLimits, type RequestThrottle, requestThrottle } from '../access/request-throttle.ts';
import { type AdmissionPolicies, admissionPolicies } from '../admission/policy-memory.ts';
import type { Clock, RandomSource } from '../clock.ts';
import { defined } from '../defined.ts';
import type { Policy } from '../fleet/policy.ts';
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
import { clusterStatusStorages } from '../kinds/cluster-statuses/storage.ts';
import { type CustomKinds, customKinds } from '../kinds/custom-resources/kinds.ts';
import { customResourceStorage } from '../kinds/custom-resources/storage.ts';
import { type DefinitionCatalog, definitionCatalog } from '../kinds/customresourcedefinitions/catalog.ts';
import { type DefinitionSections, definitionSections } from '../kinds/customresourcedefinitions/sections.ts';
import { definitionStorages } from '../kinds/customresourcedefinitions/storage.ts';
import { decisionStorages } from '../kinds/decisions/storage.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { identityStorages } from '../kinds/identities/storage.ts';
import { leaseStorages } from '../kinds/leases/storage.ts';
import { type ApiAddress, noAuthorities } from '../kinds/namespaces/contents.ts';
import { namespaceStorages } from '../kinds/namespaces/storage.ts';
import { metricsStorages } from '../kinds/node-metrics/storage.ts';
import { nodeStorages } from '../kinds/nodes/storage.ts';
import { type Budgets, budgetStorages, budgetsOver } from '../kinds/poddisruptionbudgets/storage.ts';
import { podStorages } from '../kinds/pods/storage.ts';
import { priorityClassStorages } from '../kinds/priorityclasses/storage.ts';
import { type NamespacePolicies, namespacePolicies } from '../kinds/quotas/namespace-policies.ts';
import { quotaStorages } from '../kinds/quotas/storage.ts';
import { findResource, poddisruptionbudgets, pods, storedAs } from '../kinds/registry.ts';
import { clusterObjects, shardsOf } from '../kinds/resources.ts';
import { defaultBindings, defaultRoles, viewerRules } from '../kinds/roles/default-policies.ts';
import { clusterrolebindings, clusterroles, rolebindings, roles } from '../kinds/roles/serve.ts';
import { roleStorages } from '../kinds/roles/storage.ts';
import { serviceStorages } from '../kinds/services/storage.ts';
import { silenceHistogramStorages } from '../kinds/silence-histograms/storage.ts';
import { storageClassStorages } from '../kinds/storageclasses/storage.ts';
import { failedRequests, REQUEST_FAILED, refusedSignIns } from '../kubernetes/log-throttle.ts';
import type { ReadYaml } from '../kubernetes/request-body.ts';
import type { Log } from '../observability/log.ts';
import { changeLog } from '../store/change-log.ts';
import type { ItemStore } from '../store/item-store.ts';
import type { ReadDependencies } from './call.ts';
import type { StorageContext, StorageOptions } from './kind-storage.ts';
import { objectStorage } from './object-storage.ts';
import type { ResourceStorage } from './resource-storage.ts';
import type { Gzip } from './response-body.ts';

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
  const definitions = definitionCatalog({ items: options.items, clock, objects });
  const budgets = budgetsOver(plain(poddisruptionbudgets), plain(pods), { objects, definitions });
  const policies = policiesOf(plain, options);
  const ofAdmission = admissionPoliciesOf(plain, options);
  const ofNamespaces = namespacePolicies(objects, clock);
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

export interface RequestOptions {
  readonly items: ItemStore;
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  /** The time up to which the change log may be closed. Absent: `clock`. A copy of another store has another one. */
  readonly versionClock?: Clock;
  readonly random: RandomSource;
  /** Waits between attempts at a contended write, and between two reads of a watch. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  readonly log: Log;
  readonly policy: Policy;
  /**
   * False in a process that may not write. Objects of every new cluster then appear after another process created them.
   */
  readonly makesInitialObjects?: boolean;
  /** Certificates in PEM that clients in pods trust. Absent: none are published. */
  readonly apiAuthorities?: () => string;
  /** Absent: the API has no fixed address. */
  readonly apiAddress?: ApiAddress;
  /** Absent in a process that serves no writes. */
  readonly readYaml?: ReadYaml;
  readonly gzip: Gzip;
  /** Receives a line for each write by a person. Absent: no audit log. */
  readonly auditTrail?: AuditTrail;
  /** Limits the requests of each user. Absent: no limit. */
  readonly limits?: RequestLimits;
  /** Time that this thread has computed, from any origin. Milliseconds. Absent: `limits` limits the rate only. */
  readonly busyMs?: () => number;
}

export interface RequestParts extends Omit<ReadDependencies, 'answerWatch' | 'answerPodLog'> {
  readonly storages: Storages;
  readonly customs: CustomKinds;
}

/** A definition has a group with a dot. A path of another group costs no read. */
const mayBeCustom = (group: string): boolean => group.includes('.');

/** With the caches of a process: create them once. */
export function requestDependencies(options: RequestOptions): RequestParts {
  const changes = changeLog({ items: options.items, clock: options.versionClock ?? options.clock, shardsOf });
  const storages = composeStorages({ ...options, changes });
  const { storageOf, policies, definitions, sections } = storages;
  const customs = customKinds({ definitions, sections, loadPatterns: () => import('../patterns.ts') });
  return {
    storages,
    storageOf,
    authorizer: authorizer({ policies, nodeGraph: nodeGraph({ storageOf }), viewerRules }),
    descriptorOf: (group, version, resource) =>
      findResource(group, version, resource) ??
      (mayBeCustom(group) ? customs.find(group, version, resource) : undefined),
    customs,
    random: options.random,
    authenticator: options.authenticator,
    clock: options.clock,
    log: options.log,
    noteRefusal: refusedSignIns(options.log),
    noteFault: failedRequests(options.log, REQUEST_FAILED),
    changes,
    pause: options.pause,
    gzip: options.gzip,
    ...defined({ readYaml: options.readYaml, auditTrail: options.auditTrail, throttle: throttleOf(options) }),
  };
}

function throttleOf({ limits, busyMs, items, log }: RequestOptions): RequestThrottle | undefined {
  if (limits === undefined) return undefined;
  const noteFault = failedRequests(log, 'refused requests could not be counted');
  return requestThrottle(limits, {
    busyMs,
    onRefused: refusedRequests({ log, store: refusalsAdded(items), noteFault }),
  });
}
