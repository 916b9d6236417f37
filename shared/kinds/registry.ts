import { admissionKinds } from './admission-policies/serve.ts';
import { agentreleases } from './agent-releases/serve.ts';
import { alwaysEmptyResources } from './always-empty/serve.ts';
import { horizontalpodautoscalers, horizontalpodautoscalersV1 } from './autoscalers/serve.ts';
import { certificatesigningrequests } from './certificates/serve.ts';
import { clusterstatuses } from './cluster-statuses/serve.ts';
import { configmaps } from './configmaps/serve.ts';
import { controllerrevisions, podtemplates } from './controllerrevisions/serve.ts';
import { csidrivers, csistoragecapacities } from './csidrivers/serve.ts';
import { csinodes } from './csinodes/serve.ts';
import { customresourcedefinitions } from './customresourcedefinitions/serve.ts';
import { daemonsets } from './daemonsets/serve.ts';
import { decisions } from './decisions/serve.ts';
import { deployments } from './deployments/serve.ts';
import type { ResourceDescriptor } from './descriptor.ts';
import { events, eventsV1 } from './events/serve.ts';
import { bootstraptokens, nodeidentities } from './identities/serve.ts';
import { ingressclasses, ingresses, networkpolicies } from './ingresses/serve.ts';
import { cronjobs, jobs } from './jobs/serve.ts';
import { leases } from './leases/serve.ts';
import { namespaces } from './namespaces/serve.ts';
import { nodemetrics, podmetrics } from './node-metrics/serve.ts';
import { nodes } from './nodes/serve.ts';
import { persistentvolumeclaims, persistentvolumes } from './persistentvolumes/serve.ts';
import { poddisruptionbudgets, poddisruptionbudgetsV1beta1 } from './poddisruptionbudgets/serve.ts';
import { pods } from './pods/serve.ts';
import { priorityclasses } from './priorityclasses/serve.ts';
import { limitranges, resourcequotas } from './quotas/serve.ts';
import { replicasets, replicationcontrollers } from './replicasets/serve.ts';
import { clusterrolebindings, clusterroles, rolebindings, roles } from './roles/serve.ts';
import { runtimeclasses } from './runtimeclasses/serve.ts';
import { secrets } from './secrets/serve.ts';
import { serviceaccounts } from './serviceaccounts/serve.ts';
import { endpoints, endpointslices, services } from './services/serve.ts';
import { silencehistograms } from './silence-histograms/serve.ts';
import { sitepolicies } from './site-policies/serve.ts';
import { statefulsets } from './statefulsets/serve.ts';
import { storageclasses } from './storageclasses/serve.ts';
import { volumeattachments } from './volumeattachments/serve.ts';

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
  customresourcedefinitions,
  ...admissionKinds,
  ...alwaysEmptyResources,
  agentreleases,
  nodeidentities,
  bootstraptokens,
  decisions,
  clusterstatuses,
  silencehistograms,
  sitepolicies,
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
  sitepolicies,
  volumeattachments,
};
