import type { AdmitObjects } from '../../shared/admission/created-object.ts';
import { type DefinitionCatalog, definitionCatalog } from '../../shared/kinds/customresourcedefinitions/catalog.ts';
import { type NamespacePolicies, namespacePolicies } from '../../shared/kinds/quotas/namespace-policies.ts';
import type { KubeObject, KubePersistentVolume, KubeStorageClass } from '../../shared/kinds/types.ts';
import { type ObjectCopy, objectCopy } from '../../shared/store/object-copy.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import { type NodeCopy, nodeCopy } from './daemonsets/node-copy.ts';
import { type Announcements, announcements } from './endpoints/announcements.ts';
import { type NodeZones, nodeZones } from './endpoints/node-zones.ts';
import { type KnownSelectors, knownSelectors, listObjects, type SpacedCounts, spacedCounts } from './object-lists.ts';

export interface WorkloadPorts {
  /** Certificates in PEM that clients in pods trust. Absent: none are published. */
  readonly apiAuthorities?: () => string;
  /** Absent: no policy is evaluated and no webhook called for what controllers create. */
  readonly admitObjects?: AdmitObjects;
}

export interface WorkloadDependencies extends WorkDependencies, WorkloadPorts {
  readonly admitObjects: AdmitObjects;
  /** ResourceQuotas and LimitRanges of namespaces. */
  readonly namespacePolicies: NamespacePolicies;
  readonly definitions: DefinitionCatalog;
  readonly budgets: KnownSelectors;
  readonly services: KnownSelectors;
  readonly counts: SpacedCounts;
  readonly announcements: Announcements;
  readonly networkPolicies: KnownSelectors;
  readonly nodeZones: NodeZones;
  /** Labels and taints of every Node, for DaemonSets. */
  readonly daemonNodes: NodeCopy;
  /** Every PersistentVolume and StorageClass, for claims without a volume. */
  readonly volumes: ObjectCopy<KubePersistentVolume>;
  readonly storageClasses: ObjectCopy<KubeStorageClass>;
}

const copyOf = <Kind extends KubeObject>(common: WorkDependencies, resource: string): ObjectCopy<Kind> =>
  objectCopy({
    ...common,
    resource,
    listAll: () => listObjects(common, resource, ''),
    keep: (object) => object as Kind,
  });

export const workloadDependencies = (common: WorkDependencies, ports: WorkloadPorts): WorkloadDependencies => ({
  ...common,
  ...ports,
  admitObjects: ports.admitObjects ?? (async (_creator, _of, objects) => ({ kind: 'decided', objects })),
  namespacePolicies: namespacePolicies(common.objects, common.clock),
  definitions: definitionCatalog(common),
  budgets: knownSelectors(common.objects, common.clock, 'poddisruptionbudgets'),
  services: knownSelectors(common.objects, common.clock, 'services'),
  counts: spacedCounts(common.clock),
  announcements: announcements(common.clock),
  networkPolicies: knownSelectors(common.objects, common.clock, 'networkpolicies'),
  nodeZones: nodeZones(common.objects, common.clock),
  daemonNodes: nodeCopy(common),
  volumes: copyOf(common, 'persistentvolumes'),
  storageClasses: copyOf(common, 'storageclasses'),
});
