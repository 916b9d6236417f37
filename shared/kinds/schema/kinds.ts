import { apiVersionOf } from '../../kubernetes/api-version.ts';
import { deleteOptions, status } from '../../kubernetes/schema/meta.ts';
import type { StructSchema } from '../../kubernetes/schema/schema.ts';
import { localSubjectAccessReview, subjectAccessReview, tokenRequest, tokenReview } from './access-review.ts';
import { agentRelease } from './agent-release.ts';
import { daemonSet } from './apps.ts';
import { horizontalPodAutoscaler, scale } from './autoscaling.ts';
import { horizontalPodAutoscaler as horizontalPodAutoscalerV2 } from './autoscaling-v2.ts';
import { cronJob, job } from './batch.ts';
import { certificateSigningRequest } from './certificates.ts';
import { clusterStatus } from './cluster-status.ts';
import { configMap, secret, serviceAccount } from './config.ts';
import { decision } from './decision.ts';
import { endpointSlice } from './endpoint-slice.ts';
import { coreEvent, eventsEvent } from './event.ts';
import { bootstrapToken, nodeIdentity } from './identity.ts';
import { lease } from './lease.ts';
import { ingress, ingressClass, networkPolicy } from './networking.ts';
import { namespace, node } from './node.ts';
import { nodeMetrics, podMetrics } from './node-metrics.ts';
import { persistentVolume, persistentVolumeClaim } from './persistent-volume.ts';
import { binding, pod } from './pod.ts';
import { eviction, evictionV1beta1, podDisruptionBudget, podDisruptionBudgetV1beta1 } from './policy.ts';
import { limitRange, resourceQuota } from './quota.ts';
import { clusterRole, clusterRoleBinding, role, roleBinding } from './rbac.ts';
import { selfSubjectAccessReview, selfSubjectReview, selfSubjectRulesReview } from './review.ts';
import { runtimeClass } from './runtime-class.ts';
import { priorityClass } from './scheduling.ts';
import { endpoints, service } from './service.ts';
import { silenceHistogram } from './silence-histogram.ts';
import { csiNode, volumeAttachment } from './storage.ts';
import { csiDriver, csiStorageCapacity, storageClass } from './storage-class.ts';
import {
  controllerRevision,
  deployment,
  podTemplate,
  replicaSet,
  replicationController,
  statefulSet,
} from './workloads.ts';

/** Every kind we have a schema of. A function that serves one kind imports that schema alone. */
export const KINDS: readonly StructSchema[] = [
  node,
  namespace,
  lease,
  coreEvent,
  eventsEvent,
  deleteOptions,
  status,
  pod,
  binding,
  podDisruptionBudget,
  eviction,
  evictionV1beta1,
  priorityClass,
  volumeAttachment,
  csiNode,
  daemonSet,
  nodeIdentity,
  bootstrapToken,
  agentRelease,
  decision,
  clusterStatus,
  silenceHistogram,
  nodeMetrics,
  podMetrics,
  selfSubjectAccessReview,
  selfSubjectRulesReview,
  selfSubjectReview,
  localSubjectAccessReview,
  subjectAccessReview,
  tokenRequest,
  tokenReview,
  horizontalPodAutoscaler,
  scale,
  horizontalPodAutoscalerV2,
  cronJob,
  job,
  certificateSigningRequest,
  configMap,
  secret,
  serviceAccount,
  endpointSlice,
  ingress,
  ingressClass,
  networkPolicy,
  persistentVolume,
  persistentVolumeClaim,
  limitRange,
  resourceQuota,
  clusterRole,
  clusterRoleBinding,
  role,
  roleBinding,
  runtimeClass,
  endpoints,
  service,
  csiDriver,
  csiStorageCapacity,
  storageClass,
  controllerRevision,
  deployment,
  podTemplate,
  replicaSet,
  replicationController,
  statefulSet,
  podDisruptionBudgetV1beta1,
];

const BY_KIND = new Map<string, StructSchema>();
for (const schema of KINDS) {
  for (const { group, version, kind } of schema.gvks) BY_KIND.set(keyOf(group, version, kind), schema);
}

function keyOf(group: string, version: string, kind: string): string {
  return `${apiVersionOf({ group, version })} ${kind}`;
}

/** The schema of a kind by its `apiVersion` (`v1`, `coordination.k8s.io/v1`) and `kind`. */
export function schemaOf(apiVersion: string, kind: string): StructSchema | undefined {
  return BY_KIND.get(`${apiVersion} ${kind}`);
}
