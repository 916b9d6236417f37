import { leases } from '../../heartbeat/lease-kind.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { agentreleases } from './agent-releases.ts';
import { alwaysEmptyResources } from './always-empty.ts';
import { horizontalpodautoscalers, horizontalpodautoscalersV1 } from './autoscalers.ts';
import { certificatesigningrequests } from './certificates.ts';
import { clusterstatuses } from './cluster-statuses.ts';
import { configmaps } from './configmaps.ts';
import { controllerrevisions, podtemplates } from './controllerrevisions.ts';
import { csinodes } from './csinodes.ts';
import { daemonsets } from './daemonsets.ts';
import { decisions } from './decisions.ts';
import { deployments } from './deployments.ts';
import { events, eventsV1 } from './events.ts';
import { bootstraptokens, nodeidentities } from './identities.ts';
import { ingressclasses, ingresses, networkpolicies } from './ingresses.ts';
import { cronjobs, jobs } from './jobs.ts';
import { namespaces } from './namespaces.ts';
import { nodemetrics, podmetrics } from './node-metrics.ts';
import { nodes } from './nodes.ts';
import { persistentvolumeclaims, persistentvolumes } from './persistentvolumes.ts';
import { poddisruptionbudgets, poddisruptionbudgetsV1beta1 } from './poddisruptionbudgets.ts';
import { pods } from './pods.ts';
import { priorityclasses } from './priorityclasses.ts';
import { limitranges, resourcequotas } from './quotas.ts';
import { replicasets, replicationcontrollers } from './replicasets.ts';
import { clusterrolebindings, clusterroles, rolebindings, roles } from './roles.ts';
import { runtimeclasses } from './runtimeclasses.ts';
import { secrets } from './secrets.ts';
import { serviceaccounts } from './serviceaccounts.ts';
import { endpoints, endpointslices, services } from './services.ts';
import { silencehistograms } from './silence-histograms.ts';
import { statefulsets } from './statefulsets.ts';
import { csidrivers, csistoragecapacities, storageclasses } from './storageclasses.ts';
import { volumeattachments } from './volumeattachments.ts';

/** Every resource that is served and stored, in the order of discovery. Self reviews are in self-reviews.ts. */
export const resources: readonly ResourceDescriptor[] = [
  configmaps,
  endpoints,
  events,
  limitranges,
  namespaces,
  nodes,
  persistentvolumeclaims,
  persistentvolumes,
  pods,
  podtemplates,
  replicationcontrollers,
  resourcequotas,
  secrets,
  serviceaccounts,
  services,
  leases,
  eventsV1,
  poddisruptionbudgets,
  poddisruptionbudgetsV1beta1,
  priorityclasses,
  volumeattachments,
  csinodes,
  csidrivers,
  csistoragecapacities,
  storageclasses,
  controllerrevisions,
  daemonsets,
  deployments,
  replicasets,
  statefulsets,
  cronjobs,
  jobs,
  horizontalpodautoscalers,
  horizontalpodautoscalersV1,
  certificatesigningrequests,
  endpointslices,
  ingressclasses,
  ingresses,
  networkpolicies,
  runtimeclasses,
  clusterrolebindings,
  clusterroles,
  rolebindings,
  roles,
  ...alwaysEmptyResources,
  agentreleases,
  nodeidentities,
  bootstraptokens,
  decisions,
  clusterstatuses,
  silencehistograms,
  nodemetrics,
  podmetrics,
];

const byPath = new Map(resources.map((each) => [`${each.group}/${each.version}/${each.resource}`, each]));

/** The resource of a path such as /apis/<group>/<version>/<resource>; group '' is the core group. */
export const findResource = (group: string, version: string, resource: string): ResourceDescriptor | undefined =>
  byPath.get(`${group}/${version}/${resource}`);

/** The descriptor of the stored form. It differs for a resource that serves the objects of another one (eventsV1). */
export function storedAs(descriptor: ResourceDescriptor): ResourceDescriptor {
  const { servedFrom } = descriptor;
  if (servedFrom === undefined) return descriptor;
  const stored = resources.find(
    (each) => each.servedFrom === undefined && each.group === servedFrom.group && each.resource === servedFrom.resource,
  );
  if (stored === undefined) throw new Error(`${descriptor.group}/${descriptor.resource}: servedFrom names no resource`);
  return stored;
}

/** The stored resources by plural name, which is unique among them. Metrics, which are not stored, come after them. */
export const findStored = (resource: string): ResourceDescriptor | undefined =>
  resources.find((each) => each.servedFrom === undefined && each.resource === resource);

export {
  agentreleases,
  bootstraptokens,
  csinodes,
  daemonsets,
  decisions,
  events,
  eventsV1,
  leases,
  namespaces,
  nodeidentities,
  nodes,
  poddisruptionbudgets,
  pods,
  priorityclasses,
  volumeattachments,
};
