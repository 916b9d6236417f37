/**
 * Whether a commit changes what the workload controllers read of an object. Such an item has the attribute `w`, because
 * the filter of an event source cannot compare an item with its former state. A status post of a pod that only moves
 * times starts no function.
 */

import { isMirrored } from '../kinds/services/mirrored-endpoints.ts';
import { isNamespaceContent } from '../kinds/stored-resource.ts';
import type { KubeConfigMap, KubeEndpointSlice, KubeEndpoints, KubeJob, KubeObject, KubePod } from '../kinds/types.ts';
import { jsonEqual } from '../kubernetes/json.ts';

/** Finalizers of an object that is deleted after its dependents. */
const DEPENDENTS_FINALIZERS: readonly string[] = ['foregroundDeletion', 'orphan'];

/** The part of an object that the controllers read. Undefined: they read the object for its owners alone. */
type ReadPart = (object: KubeObject) => unknown;

const metadataOf = ({ metadata }: KubeObject) => [
  metadata.labels,
  metadata.ownerReferences,
  metadata.finalizers,
  metadata.deletionTimestamp,
  // A machine may end the grace period in the second in which it is over: the time is then the same.
  metadata.deletionGracePeriodSeconds,
];

const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';

function podPart(pod: KubePod): unknown {
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  const restarts = (pod.status?.containerStatuses ?? []).map(({ restartCount }) => restartCount);
  return [
    ...metadataOf(pod),
    pod.metadata.annotations?.[DELETION_COST],
    pod.spec?.nodeName,
    pod.status?.phase,
    [ready?.status, ready?.lastTransitionTime],
    restarts,
    [pod.status?.podIP, pod.status?.podIPs],
  ];
}

/** Its status is written by the controllers themselves, and read by those of its owner. */
const wholePart: ReadPart = (object) => [
  ...metadataOf(object),
  object.metadata.annotations,
  object.spec,
  object.status,
];
const specPart: ReadPart = (object) => [...metadataOf(object), object.metadata.annotations, object.spec];

/** Its counts are written by the controller itself. Its CronJob reads whether it has finished. */
const jobPart = (job: KubeJob): unknown => [
  ...metadataOf(job),
  job.spec,
  (job.status?.conditions ?? []).filter(({ type }) => type === 'Complete' || type === 'Failed'),
  job.status?.completionTime,
];

/** Those that clients write are mirrored. A lock of a leader election is not: it is renewed every two seconds. */
const endpointsPart = (endpoints: KubeEndpoints): unknown =>
  isMirrored(endpoints) && [endpoints.metadata.labels, endpoints.metadata.annotations, endpoints.subsets];

const READ_PARTS: Readonly<Record<string, ReadPart>> = {
  pods: podPart,
  replicasets: wholePart,
  deployments: specPart,
  replicationcontrollers: wholePart,
  daemonsets: specPart,
  statefulsets: specPart,
  // For DaemonSets. A heartbeat, a status and a condition change none of this.
  nodes: ({ metadata, spec }) => [metadata.labels, spec?.['taints']],
  jobs: jobPart,
  cronjobs: (cronJob) => [...metadataOf(cronJob), cronJob.spec],
  poddisruptionbudgets: (budget) => [...metadataOf(budget), budget.spec, budget.status?.['disruptedPods']],
  // A terminating namespace is emptied. NetworkPolicies select by labels.
  namespaces: ({ metadata, spec }) => [metadata.labels, metadata.deletionTimestamp, metadata.finalizers, spec],
  resourcequotas: ({ spec }) => spec,
  endpoints: endpointsPart,
  // Its objects are deleted with it, and others may get names that it leaves.
  customresourcedefinitions: ({ metadata, spec, status }) => [
    metadata.deletionTimestamp,
    metadata.finalizers,
    spec?.['names'],
    status?.['acceptedNames'],
  ],
  // Their endpoints follow.
  services: ({ metadata, spec }) => [metadata.labels, metadata.deletionTimestamp, metadata.finalizers, spec],
  // Agents that route Services read them.
  endpointslices: ({ metadata, addressType, endpoints, ports }: KubeEndpointSlice) => [
    metadata.labels,
    addressType,
    endpoints,
    ports,
  ],
  networkpolicies: ({ spec }) => spec,
  persistentvolumeclaims: wholePart,
  persistentvolumes: wholePart,
  // Claims wait for a class, or for a default one.
  storageclasses: ({ metadata }) => metadata.annotations,
};

/** The parts of a namespace's own objects that are repaired. Others of these resources are read by no controller. */
const REPAIRED_PARTS: Readonly<Record<string, ReadPart>> = {
  configmaps: ({ data }: KubeConfigMap) => data,
};

/** An owner, or an object with dependents: the garbage collector reads this of every kind. */
function ownershipOf(object: KubeObject | undefined): unknown {
  const { ownerReferences = [], finalizers, deletionTimestamp } = object?.metadata ?? {};
  const isDeleted = deletionTimestamp !== undefined;
  const waits = DEPENDENTS_FINALIZERS.filter((each) => isDeleted && finalizers?.includes(each));
  return [ownerReferences, waits];
}

export function changesWorkloads(resource: string, before: KubeObject | undefined, after: KubeObject): boolean {
  if (!jsonEqual(ownershipOf(before), ownershipOf(after))) return true;
  const isRepaired = before !== undefined && isNamespaceContent(resource, before.metadata.name ?? '');
  const part = READ_PARTS[resource] ?? (isRepaired ? REPAIRED_PARTS[resource] : undefined);
  if (part === undefined) return false;
  return before === undefined || !jsonEqual(part(before), part(after));
}
