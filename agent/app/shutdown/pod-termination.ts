/** Terminates the pods of this node group by group, lowest priority first, each group within its period. */
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { PriorityGrace } from '../../config.ts';
import type { AgentTime } from '../../ports/time.ts';
import { type ShutdownGroup, shutdownGraceSeconds, shutdownGroups } from '../../rules/shutdown-groups.ts';
import { type PodStatus, terminatedStatus } from '../../rules/shutdown-status.ts';
import { waitAtMost } from '../bounded-wait.ts';
import { describeError } from '../describe-error.ts';

export interface PodTerminationDependencies {
  /** Result of shutdownBuckets; empty: graceful shutdown is off. */
  readonly buckets: readonly PriorityGrace[];
  readonly time: AgentTime;
  readonly log: Log;
  /** Pods that run or are about to run. */
  readonly activePods: () => readonly KubePod[];
  /** Resolves when no container of the pod runs. `change` maps its status to the one that is written. */
  readonly killPod: (pod: KubePod, graceSeconds: number, change: (status: PodStatus) => PodStatus) => Promise<void>;
  /** Resolves when no volume of the pods is mounted; absent if the agent mounts none. */
  readonly volumesUnmounted?: (pods: readonly KubePod[], signal: AbortSignal) => Promise<void>;
}

export async function terminatePods(dependencies: PodTerminationDependencies, stop: AbortSignal): Promise<void> {
  for (const group of shutdownGroups(dependencies.buckets, dependencies.activePods())) {
    if (stop.aborted) return;
    if (group.pods.length > 0) await terminateGroup(dependencies, group, stop);
  }
}

/**
 * Resolves when all pods of the group are terminated, or when its period is over. Pods that still run then are left.
 */
async function terminateGroup(
  dependencies: PodTerminationDependencies,
  group: ShutdownGroup,
  stop: AbortSignal,
): Promise<void> {
  const { time, log } = dependencies;
  const { pods, periodSeconds, priority } = group;
  const over = new AbortController();
  const terminated = Promise.all(pods.map((pod) => terminatePod(dependencies, pod, periodSeconds))).then(() =>
    over.signal.aborted ? undefined : waitForUnmount(dependencies, group, over.signal),
  );
  if (periodSeconds > 0) {
    const outcome = await waitAtMost(time, periodSeconds * 1_000, terminated, stop);
    if (outcome === 'timedOut' && !stop.aborted) {
      log.info('Shutdown manager pod killing time out', { periodSeconds, priority });
    }
  }
  over.abort();
}

async function terminatePod(
  { time, log, killPod }: PodTerminationDependencies,
  pod: KubePod,
  periodSeconds: number,
): Promise<void> {
  try {
    await killPod(pod, shutdownGraceSeconds(pod, periodSeconds), (status) => terminatedStatus(status, time.nowMs()));
  } catch (error) {
    const { namespace, name } = pod.metadata;
    log.error('Shutdown manager failed killing pod', { namespace, name, error: describeError(error) });
  }
}

async function waitForUnmount(
  { log, volumesUnmounted }: PodTerminationDependencies,
  { pods, priority }: ShutdownGroup,
  signal: AbortSignal,
): Promise<void> {
  try {
    await volumesUnmounted?.(pods, signal);
  } catch (error) {
    log.error('Failed while waiting for all the volumes belonging to Pods in this group to unmount', {
      priority,
      error: describeError(error),
    });
  }
}
