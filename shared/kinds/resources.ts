/** The kinds of the cluster, for the store and the controllers. registry.ts has what the API needs to serve them. */

import type { Clock, RandomSource } from '../clock.ts';
import { defined } from '../defined.ts';
import { apiVersionOf } from '../kubernetes/normal-form.ts';
import type { ItemStore } from '../store/item-store.ts';
import { type ObjectStore, objectStore } from '../store/object-store.ts';
import { ADMISSION_KINDS } from './admission-policies/resource.ts';
import { AGENT_RELEASES } from './agent-releases/resource.ts';
import { ALWAYS_EMPTY } from './always-empty/resource.ts';
import { AUTOSCALERS } from './autoscalers/resource.ts';
import { SIGNING_REQUESTS } from './certificates/resource.ts';
import { CLUSTER_STATUSES } from './cluster-statuses/resource.ts';
import { CONFIG_MAPS } from './configmaps/resource.ts';
import { CONTROLLER_REVISIONS, POD_TEMPLATES } from './controllerrevisions/resource.ts';
import { CSI_DRIVERS, CSI_STORAGE_CAPACITIES } from './csidrivers/resource.ts';
import { CSI_NODES } from './csinodes/resource.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from './customresourcedefinitions/resource.ts';
import { DAEMON_SETS } from './daemonsets/resource.ts';
import { DECISIONS } from './decisions/resource.ts';
import { DEPLOYMENTS } from './deployments/resource.ts';
import { EVENTS } from './events/resource.ts';
import { BOOTSTRAP_TOKENS, NODE_IDENTITIES } from './identities/resource.ts';
import { INGRESS_CLASSES, INGRESSES, NETWORK_POLICIES } from './ingresses/resource.ts';
import { CRON_JOBS, JOBS } from './jobs/resource.ts';
import { LEASES } from './leases/resource.ts';
import { NAMESPACES } from './namespaces/resource.ts';
import { NODES } from './nodes/resource.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from './persistentvolumes/resource.ts';
import { DISRUPTION_BUDGETS } from './poddisruptionbudgets/resource.ts';
import { PODS } from './pods/resource.ts';
import { PRIORITY_CLASSES } from './priorityclasses/resource.ts';
import { LIMIT_RANGES, RESOURCE_QUOTAS } from './quotas/resource.ts';
import { REPLICA_SETS, REPLICATION_CONTROLLERS } from './replicasets/resource.ts';
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES } from './roles/resource.ts';
import { RUNTIME_CLASSES } from './runtimeclasses/resource.ts';
import { SECRETS } from './secrets/resource.ts';
import { SERVICE_ACCOUNTS } from './serviceaccounts/resource.ts';
import { ENDPOINT_SLICES, ENDPOINTS, SERVICES } from './services/resource.ts';
import { SILENCE_HISTOGRAMS } from './silence-histograms/resource.ts';
import { SITE_POLICIES } from './site-policies/resource.ts';
import { STATEFUL_SETS } from './statefulsets/resource.ts';
import { STORAGE_CLASSES } from './storageclasses/resource.ts';
import type { StoredResource } from './stored-resource.ts';
import type { KubeObject } from './types.ts';
import { VOLUME_ATTACHMENTS } from './volumeattachments/resource.ts';

/** Every kind that has objects of its own, each with a plural name that no other has. */
export const storedResources: readonly StoredResource[] = [
  CONFIG_MAPS,
  ENDPOINTS,
  EVENTS,
  LIMIT_RANGES,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  POD_TEMPLATES,
  REPLICATION_CONTROLLERS,
  RESOURCE_QUOTAS,
  SECRETS,
  SERVICE_ACCOUNTS,
  SERVICES,
  LEASES,
  DISRUPTION_BUDGETS,
  PRIORITY_CLASSES,
  VOLUME_ATTACHMENTS,
  CSI_NODES,
  CSI_DRIVERS,
  CSI_STORAGE_CAPACITIES,
  STORAGE_CLASSES,
  CONTROLLER_REVISIONS,
  DAEMON_SETS,
  DEPLOYMENTS,
  REPLICA_SETS,
  STATEFUL_SETS,
  CRON_JOBS,
  JOBS,
  AUTOSCALERS,
  SIGNING_REQUESTS,
  ENDPOINT_SLICES,
  INGRESS_CLASSES,
  INGRESSES,
  NETWORK_POLICIES,
  RUNTIME_CLASSES,
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  ROLE_BINDINGS,
  ROLES,
  CUSTOM_RESOURCE_DEFINITIONS,
  ...ADMISSION_KINDS,
  ...ALWAYS_EMPTY,
  AGENT_RELEASES,
  NODE_IDENTITIES,
  BOOTSTRAP_TOKENS,
  DECISIONS,
  CLUSTER_STATUSES,
  SILENCE_HISTOGRAMS,
  SITE_POLICIES,
];

const byPlural = new Map(storedResources.map((each) => [each.resource, each]));

/** By plural name. */
export const findStored = (resource: string): StoredResource | undefined => byPlural.get(resource);

const byKind = new Map(
  storedResources.flatMap((each) =>
    [apiVersionOf(each), ...(each.otherApiVersions ?? [])].map((apiVersion) => [`${apiVersion} ${each.kind}`, each]),
  ),
);

/** By the names in an object or in a reference to it, in any version that is served. */
export const storedResourceOf = (apiVersion: string, kind: string): StoredResource | undefined =>
  byKind.get(`${apiVersion} ${kind}`);

/** Shards of a resource, by plural name. */
export const shardsOf = (resource: string): number => findStored(resource)?.shards ?? 1;

export interface ClusterObjectsOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Waits between attempts at a contended commit. Milliseconds. Absent: no wait. */
  readonly pause?: (milliseconds: number) => Promise<unknown>;
}

export const selectableFieldsOf = (resource: string, object: KubeObject): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(findStored(resource)?.selectableFields ?? {}).map(([field, read]) => [field, read(object)]),
  );

/** Opens the store of Kubernetes objects. Every process must use the same shards and selectable fields. */
export const clusterObjects = ({ items, clock, random, pause }: ClusterObjectsOptions): ObjectStore =>
  objectStore({
    items,
    clock,
    shardsOf,
    selectableFields: selectableFieldsOf,
    random: random.fraction,
    ...defined({ pause }),
  });
