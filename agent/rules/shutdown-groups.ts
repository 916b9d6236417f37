/**
 * The order in which pods are terminated during a node shutdown, and their grace periods.
 * Source: groupByPriority and killPods in pkg/kubelet/nodeshutdown.
 */
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { PriorityGrace } from '../config.ts';
import { priorityOf } from './critical-pod.ts';
import { terminationGraceOf } from './kill-request.ts';

export interface ShutdownGroup {
  readonly priority: number;
  /** Time for the whole group. */
  readonly periodSeconds: number;
  readonly pods: readonly KubeObject[];
}

/**
 * One group per bucket, also without pods, lowest priority first. A pod belongs to the highest bucket that is not above
 * its priority; a pod below all buckets belongs to the lowest one. Static and mirror pods are grouped by their priority
 * too.
 */
export function shutdownGroups(buckets: readonly PriorityGrace[], pods: readonly KubeObject[]): ShutdownGroup[] {
  const sorted = [...buckets].sort((left, right) => left.priority - right.priority);
  const members = sorted.map((): KubeObject[] => []);
  for (const pod of pods) {
    const above = sorted.findIndex(({ priority }) => priority > priorityOf(pod));
    const index = above === -1 ? sorted.length - 1 : Math.max(0, above - 1);
    members[index]?.push(pod);
  }
  return sorted.map(({ priority, shutdownGracePeriodSeconds }, index) => ({
    priority,
    periodSeconds: shutdownGracePeriodSeconds,
    pods: members[index] ?? [],
  }));
}

/** The pod's own grace period if it has one, limited to the period of its group. Seconds. */
export const shutdownGraceSeconds = (pod: KubeObject, periodSeconds: number): number =>
  Math.min(terminationGraceOf(pod) ?? periodSeconds, periodSeconds);
