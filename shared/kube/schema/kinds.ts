import { daemonSet } from './apps.ts';
import { clusterStatus } from './cluster-status.ts';
import { decision } from './decision.ts';
import { coreEvent, eventsEvent } from './event.ts';
import { bootstrapToken, nodeIdentity } from './identity.ts';
import { lease } from './lease.ts';
import { deleteOptions, status } from './meta.ts';
import { namespace, node } from './node.ts';
import { binding, pod } from './pod.ts';
import { eviction, evictionV1beta1, podDisruptionBudget } from './policy.ts';
import { selfSubjectAccessReview, selfSubjectReview, selfSubjectRulesReview } from './review.ts';
import { priorityClass } from './scheduling.ts';
import type { StructSchema } from './schema.ts';
import { csiNode, volumeAttachment } from './storage.ts';

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
  decision,
  clusterStatus,
  selfSubjectAccessReview,
  selfSubjectRulesReview,
  selfSubjectReview,
];

const BY_KIND = new Map<string, StructSchema>();
for (const schema of KINDS) {
  for (const { group, version, kind } of schema.gvks) BY_KIND.set(keyOf(group, version, kind), schema);
}

function keyOf(group: string, version: string, kind: string): string {
  return `${group === '' ? version : `${group}/${version}`} ${kind}`;
}

/** The schema of a kind by its `apiVersion` (`v1`, `coordination.k8s.io/v1`) and `kind`. */
export function schemaOf(apiVersion: string, kind: string): StructSchema | undefined {
  return BY_KIND.get(`${apiVersion} ${kind}`);
}
