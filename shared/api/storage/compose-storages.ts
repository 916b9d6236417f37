/** The storage of each resource: most are plain objects, some have their own rows or a computed status. */

import { bootstrapTokenStore } from '../../access/bootstrap-token-store.ts';
import { nodeKeyStore } from '../../access/node-key-store.ts';
import { type Policies, policyCache } from '../../access/policy-cache.ts';
import type { Clock, RandomSource } from '../../clock.ts';
import { decisionStore } from '../../decisions/decision-store.ts';
import { podUseWrites } from '../../fleet/nodes/node-use.ts';
import { nodeHealthWrites } from '../../fleet/nodes/node-writes.ts';
import type { Policy } from '../../fleet/policy.ts';
import { silenceStore } from '../../fleet/silences/silence-store.ts';
import { fleetStore } from '../../fleet/zones/fleet-store.ts';
import { findAlwaysEmpty } from '../../kinds/always-empty/serve.ts';
import { clusterObjects } from '../../kinds/cluster-objects.ts';
import { clusterStatusStorage } from '../../kinds/cluster-statuses/storage.ts';
import { decisionStorage } from '../../kinds/decisions/storage.ts';
import type { ResourceDescriptor } from '../../kinds/descriptor.ts';
import { bootstrapTokenStorage, identityStorage } from '../../kinds/identities/storage.ts';
import { LEASE_NAMESPACE } from '../../kinds/leases/lease-record.ts';
import { leaseStore } from '../../kinds/leases/lease-store.ts';
import { nodeLeaseStorage } from '../../kinds/leases/storage.ts';
import { type ApiAuthorities, noAuthorities } from '../../kinds/namespaces/contents.ts';
import { SYSTEM_NAMESPACES } from '../../kinds/namespaces/serve.ts';
import { withContents, withInitialContent } from '../../kinds/namespaces/storage.ts';
import { METRICS_GROUP, nodemetrics, podmetrics } from '../../kinds/node-metrics/serve.ts';
import { nodeMetricsStorage } from '../../kinds/node-metrics/storage.ts';
import { nodeStorage } from '../../kinds/nodes/storage.ts';
import { type Budgets, budgetsOver } from '../../kinds/poddisruptionbudgets/storage.ts';
import { systemPriorityClasses } from '../../kinds/priorityclasses/system-classes.ts';
import { type NamespacePolicies, namespacePolicies } from '../../kinds/quotas/namespace-policies.ts';
import { leases, namespaces, nodes, poddisruptionbudgets, pods, storedAs } from '../../kinds/registry.ts';
import { defaultBindings, defaultRoles } from '../../kinds/roles/default-policies.ts';
import { clusterrolebindings, clusterroles, rolebindings, roles } from '../../kinds/roles/serve.ts';
import { aggregatingStorage, reportingStorage, withFixedObjects } from '../../kinds/roles/storage.ts';
import { componentStatusStorage, withApiObject } from '../../kinds/services/api-objects.ts';
import { ipaddresses, serviceStorage } from '../../kinds/services/storage.ts';
import { silenceHistogramStorage } from '../../kinds/silence-histograms/storage.ts';
import type { KubeObject } from '../../kinds/types.ts';
import { formatTime } from '../../kubernetes/time.ts';
import type { ChangeLog } from '../../store/change-log.ts';
import type { ItemStore } from '../../store/item-store.ts';
import {
  emptyStorage,
  type ObjectStorageOptions,
  objectStorage,
  splitStorage,
  withInitialObjects,
} from './object-storage.ts';
import type { ResourceStorage } from './resource-storage.ts';

/** Events expire one hour after they were last written, as with upstream's --event-ttl. */
const EVENT_TTL_SECONDS = 3_600;

export interface StorageOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Waits between attempts at a contended write. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  readonly policy: Policy;
  readonly changes: ChangeLog;
  /** Absent: none are published. */
  readonly apiAuthorities?: ApiAuthorities;
  /** False in a process that may not write. Absent: true. */
  readonly makesInitialObjects?: boolean;
}

export interface Storages {
  /** The storage of a resource, made on first use. Two resources that serve the same objects share one. */
  readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage;
  readonly budgets: Budgets;
  /** Roles and bindings, in memory. */
  readonly policies: Policies;
  readonly namespacePolicies: NamespacePolicies;
}

export function composeStorages(options: StorageOptions): Storages {
  const plain = plainStorages(options);
  const objects = clusterObjects(options);
  const budgets = budgetsOver(plain(poddisruptionbudgets), plain(pods), objects.get);
  const { changes, clock } = options;
  const policies = policiesOf(plain, changes);
  const ofNamespaces = namespacePolicies(objects, clock);
  const special = specialStorages(options, { plain, budgets, policies, namespacePolicies: ofNamespaces, storageOf });
  const storages = new Map<string, ResourceStorage>();
  function create(descriptor: ResourceDescriptor): ResourceStorage {
    const { group, version, resource } = descriptor;
    if (findAlwaysEmpty(group, version, resource) !== undefined) {
      const empty = emptyStorage(async () => String(await changes.currentVersion(resource)));
      return resource === 'componentstatuses' ? componentStatusStorage(empty) : empty;
    }
    if (descriptor === podmetrics) return emptyStorage(async () => String(await changes.currentVersion(pods.resource)));
    if (descriptor === nodemetrics) {
      return nodeMetricsStorage({ nodes: storageOf(nodes), items: options.items, clock: options.clock });
    }
    return special[resource]?.(descriptor) ?? plain(descriptor);
  }
  function storageOf(served: ResourceDescriptor): ResourceStorage {
    const descriptor = findAlwaysEmpty(served.group, served.version, served.resource) ?? storedAs(served);
    // Metrics have the plural names of what they measure.
    const key = descriptor.group === METRICS_GROUP ? `${METRICS_GROUP}/${descriptor.resource}` : descriptor.resource;
    const storage = storages.get(key) ?? create(descriptor);
    storages.set(key, storage);
    return storage;
  }
  return { storageOf, budgets, policies, namespacePolicies: ofNamespaces };
}

type PlainStorage = (descriptor: ResourceDescriptor, more?: Partial<ObjectStorageOptions>) => ResourceStorage;

function plainStorages({ items, clock, random, pause, changes }: StorageOptions): PlainStorage {
  const objects = clusterObjects({ items, clock, random, pause });
  return (descriptor, more = {}) => objectStorage(descriptor, { objects, changes, ...more });
}

function policiesOf(plain: PlainStorage, changes: ChangeLog): Policies {
  const stored = {
    clusterroles: plain(clusterroles),
    clusterrolebindings: plain(clusterrolebindings),
    roles: plain(roles),
    rolebindings: plain(rolebindings),
  };
  return policyCache({ changes, defaultRoles, defaultBindings, list: (kind, query) => stored[kind].list(query) });
}

interface SharedStorages extends Storages {
  readonly plain: PlainStorage;
}

/** Resources that are not plain objects, by plural name. */
function specialStorages(
  options: StorageOptions,
  { plain, budgets, policies, namespacePolicies: ofNamespaces, storageOf }: SharedStorages,
): Readonly<Record<string, (descriptor: ResourceDescriptor) => ResourceStorage>> {
  const { items, clock, random, policy, changes } = options;
  const initial = initialObjects(options);
  const { apiAuthorities = noAuthorities } = options;
  const newObject = () => ({ nowMs: clock.nowMs(), uuid: random.uuid, apiAuthorities });
  const inNamespaces = (descriptor: ResourceDescriptor): ResourceStorage =>
    options.makesInitialObjects === false
      ? plain(descriptor)
      : withInitialContent(descriptor.resource, plain(descriptor), () => storageOf(namespaces), newObject);
  const ofApi = (descriptor: ResourceDescriptor, storage: ResourceStorage): ResourceStorage =>
    options.makesInitialObjects === false ? storage : withApiObject(descriptor, storage, newObject);
  /** This process enforces a new quota or LimitRange at once. */
  const admitting = (descriptor: ResourceDescriptor): ResourceStorage => {
    const storage = plain(descriptor);
    return {
      ...storage,
      async create(object, along) {
        const created = await storage.create(object, along);
        ofNamespaces.forget(object.metadata.namespace ?? '');
        return created;
      },
    };
  };
  return {
    nodes: (descriptor) =>
      // The digest in the `health` table changes in the transaction that writes its Node.
      nodeStorage(plain(descriptor, { together: (write) => nodeHealthWrites(write, clock.nowMs()) }), {
        items,
        clock,
        allocatesPodCidrs: policy.clusterCIDRs.length > 0,
        profiles: policy.profiles,
      }),
    // The scheduler binds no pod to a node if pods were added to it since it read them.
    pods: (descriptor) => plain(descriptor, { together: podUseWrites }),
    events: (descriptor) => plain(descriptor, { expiresAtSeconds: () => eventExpirySeconds(clock.nowMs()) }),
    leases: (descriptor) => {
      const currentVersion = async () => String(await changes.currentVersion(leases.resource));
      const ofNodes = nodeLeaseStorage({ health: leaseStore(items), clock, random, currentVersion });
      return splitStorage(LEASE_NAMESPACE, ofNodes, plain(descriptor));
    },
    namespaces: (descriptor) =>
      initial.with(withContents(plain(descriptor), newObject), SYSTEM_NAMESPACES, initial.namespace),
    serviceaccounts: inNamespaces,
    configmaps: inNamespaces,
    resourcequotas: admitting,
    limitranges: admitting,
    priorityclasses: (descriptor) =>
      initial.with(
        plain(descriptor),
        systemPriorityClasses().map(({ metadata }) => metadata.name ?? ''),
        initial.priorityClass,
      ),
    nodeidentities: () => identityStorage(nodeKeyStore(items), clock),
    bootstraptokens: () => bootstrapTokenStorage(bootstrapTokenStore(items), clock),
    decisions: () => decisionStorage(decisionStore(items), clock),
    clusterstatuses: () => clusterStatusStorage(fleetStore(items), { clock, policy, items }),
    silencehistograms: () => silenceHistogramStorage(silenceStore(items), clock),
    poddisruptionbudgets: () => budgets.storage,
    roles: (descriptor) => reportingStorage(plain(descriptor), policies),
    rolebindings: (descriptor) => reportingStorage(plain(descriptor), policies),
    clusterroles(descriptor) {
      const stored = withFixedObjects(reportingStorage(plain(descriptor), policies), defaultRoles);
      return aggregatingStorage(stored, { policies, clock });
    },
    clusterrolebindings: (descriptor) =>
      withFixedObjects(reportingStorage(plain(descriptor), policies), defaultBindings),
    services: (descriptor) => {
      const stored = serviceStorage({ services: plain(descriptor), addresses: plain(ipaddresses), random, clock });
      return ofApi(descriptor, stored);
    },
    endpoints: (descriptor) => ofApi(descriptor, plain(descriptor)),
    endpointslices: (descriptor) => ofApi(descriptor, plain(descriptor)),
  };
}

/** Objects that every new cluster has, with the metadata of an ordinary creation. */
function initialObjects({ clock, random, makesInitialObjects = true }: StorageOptions) {
  const metadataOf = (name: string) => ({
    name,
    uid: random.uuid(),
    creationTimestamp: formatTime(clock.nowMs()),
  });
  const unchanged: typeof withInitialObjects = (storage) => storage;
  return {
    with: makesInitialObjects ? withInitialObjects : unchanged,
    namespace: (name: string): KubeObject =>
      namespaces.prepareForCreate({ metadata: metadataOf(name) }, { nowMs: clock.nowMs() }),
    priorityClass(name: string): KubeObject {
      const object = systemPriorityClasses().find(({ metadata }) => metadata.name === name);
      if (object === undefined) throw new Error(`${name} is not a system priority class`);
      return { ...object, metadata: { ...object.metadata, ...metadataOf(name) } };
    },
  };
}

/**
 * Counted from the write, as upstream. The times in an event come from a machine, and its clock may be wrong by years.
 */
const eventExpirySeconds = (nowMs: number): number => Math.ceil(nowMs / 1_000) + EVENT_TTL_SECONDS;
