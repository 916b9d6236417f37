/**
 * Which pods end when, as the machine goes down, and with how much grace.
 * Source: groupByPriority and killPods in pkg/kubelet/nodeshutdown.
 */
import type { KubeObject } from '../../shared/kube/types.ts';
import type { PriorityGrace } from '../config.ts';
import { priorityOf } from './critical-pod.ts';
import { terminationGraceOf } from './kill-request.ts';

export interface ShutdownGroup {
  readonly priority: number;
  /** For the whole group. */
  readonly periodSeconds: number;
  readonly pods: readonly KubeObject[];
}

/**
 * A group for every bucket, empty ones too, lowest priority first. A pod belongs to the highest bucket that is not above
 * it; one below all of them to the lowest. Being static or a mirror raises nobody: the number alone counts.
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

/** The pod's own grace where it says one, but never more than its group has. Seconds. */
export const shutdownGraceSeconds = (pod: KubeObject, periodSeconds: number): number =>
  Math.min(terminationGraceOf(pod) ?? periodSeconds, periodSeconds);
