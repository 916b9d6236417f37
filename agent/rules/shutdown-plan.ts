/** The plan of a node shutdown: which pods are terminated when. */
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { PriorityGrace } from '../config.ts';
import { priorityOf } from './critical-pod.ts';
import { shutdownGraceSeconds, shutdownGroups } from './shutdown-groups.ts';
import { requestedDelayMs } from './shutdown-settings.ts';

export interface ShutdownPhase {
  readonly priority: number;
  readonly periodSeconds: number;
  /** Latest start: the phase before may end early, with its last pod. A phase without pods adds no time. */
  readonly beginsAtSeconds: number;
  readonly pods: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly priority: number;
    readonly graceSeconds: number;
  }[];
}

export interface ShutdownPlan {
  /** The delay requested from the system, for all phases, also those without pods. */
  readonly requestedSeconds: number;
  /** Longest time until the last pod is terminated. */
  readonly longestSeconds: number;
  readonly phases: readonly ShutdownPhase[];
}

export function shutdownPlan(buckets: readonly PriorityGrace[], pods: readonly KubeObject[]): ShutdownPlan {
  let atSeconds = 0;
  const phases = shutdownGroups(buckets, pods).map(({ priority, periodSeconds, pods: members }): ShutdownPhase => {
    const beginsAtSeconds = atSeconds;
    if (members.length > 0) atSeconds += periodSeconds;
    return {
      priority,
      periodSeconds,
      beginsAtSeconds,
      pods: members.map((pod) => ({
        namespace: pod.metadata.namespace ?? 'default',
        name: pod.metadata.name ?? '',
        priority: priorityOf(pod),
        graceSeconds: shutdownGraceSeconds(pod, periodSeconds),
      })),
    };
  });
  return { requestedSeconds: requestedDelayMs(buckets) / 1_000, longestSeconds: atSeconds, phases };
}
