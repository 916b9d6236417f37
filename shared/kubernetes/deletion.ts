/**
 * Graceful deletion, with the same rules for users, evictions and controllers.
 * Source: k8s.io/apiserver pkg/registry/rest/delete.go, and the pod strategy in upstream pkg/registry/core/pod.
 */
import { isTerminated } from '../kinds/pods/resource.ts';
import type { KubeObject, KubePod } from '../kinds/types.ts';
import { formatTime } from './time.ts';
import { INT64_MAX } from './whole-number.ts';

/** For a pod without terminationGracePeriodSeconds. */
const GRACE_SECONDS_DEFAULT = 30;

/**
 * Grace period of a pod's deletion in seconds. 0 for a pod that is bound to no node or has terminated.
 *
 * @param askedSeconds grace period that the deletion requests; replaces the pod's own
 */
export function podGraceSeconds(pod: KubePod, askedSeconds?: number): number {
  if ((pod.spec?.nodeName ?? '') === '' || isTerminated(pod)) return 0;
  const own = pod.spec?.terminationGracePeriodSeconds;
  const seconds = askedSeconds ?? (typeof own === 'number' ? own : GRACE_SECONDS_DEFAULT);
  // Kubernetes reads a negative grace as 1 second. The upper bound is that of the field: an object may
  // have been stored before validation had the bound.
  return seconds < 0 ? 1 : Math.min(Math.trunc(seconds), INT64_MAX);
}

/**
 * The object marked as deleted. Returns the same object if it is already marked with this grace period or a shorter
 * one. A very long grace period ends after the last time that RFC 3339 can express; that time is stored then.
 */
export function markDeleted(object: KubeObject, graceSeconds: number, nowMs: number): KubeObject {
  const { metadata } = object;
  const before = metadata.deletionGracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined && (before === undefined || graceSeconds >= before)) return object;
  return {
    ...object,
    metadata: {
      ...metadata,
      deletionTimestamp: formatTime(nowMs + graceSeconds * 1_000),
      deletionGracePeriodSeconds: graceSeconds,
      ...(metadata.generation === undefined ? {} : { generation: metadata.generation + 1 }),
    },
  };
}
