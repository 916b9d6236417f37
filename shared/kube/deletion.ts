/**
 * Graceful deletion, the same whoever deletes: a person, an eviction or a controller.
 * Source: k8s.io/apiserver pkg/registry/rest/delete.go, and the pod strategy in upstream pkg/registry/core/pod.
 */
import { isTerminated } from './pods/phase.ts';
import { formatTime } from './time.ts';
import type { KubeObject, KubePod } from './types.ts';
import { INT64_MAX } from './whole-number.ts';

/** Of a pod that names no terminationGracePeriodSeconds. */
const GRACE_SECONDS_DEFAULT = 30;

/**
 * Seconds a pod may take to end, 0 for at once: one that no node runs, or that has ended, has nothing to wait for.
 *
 * @param askedSeconds what the deletion itself asks for, instead of the pod's own grace
 */
export function podGraceSeconds(pod: KubePod, askedSeconds?: number): number {
  if ((pod.spec?.nodeName ?? '') === '' || isTerminated(pod)) return 0;
  const own = pod.spec?.terminationGracePeriodSeconds;
  const seconds = askedSeconds ?? (typeof own === 'number' ? own : GRACE_SECONDS_DEFAULT);
  // Kubernetes reads a negative grace as 1 second. The upper bound is that of the field: an object may be older than the
  // check of what is stored.
  return seconds < 0 ? 1 : Math.min(Math.trunc(seconds), INT64_MAX);
}

/**
 * The object as it waits for its end; itself when it is marked already with no longer grace than this. A grace may be
 * longer than the calendar: the time then is the last second that RFC 3339 can write.
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
