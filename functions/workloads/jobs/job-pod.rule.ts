/** What the Job controller reads of a pod. Sources: pkg/controller/job/{job_controller,backoff_utils}.go. */
import type { KubePod } from '../../../shared/kinds/types.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import { isTracked, type OwnedPod, ownedPodOf } from '../owned-pods.rule.ts';
import { failuresBefore, type IndexFailures } from './index-failures.rule.ts';
import { indexOf } from './indexes.rule.ts';

export interface ContainerEnd {
  readonly name: string;
  readonly exitCode: number;
}

export interface JobPod extends OwnedPod {
  /** It has the finalizer: it is not counted yet. */
  readonly isTracked: boolean;
  /** It is being deleted, and its node has not confirmed the end. */
  readonly isAwaited: boolean;
  readonly index: number | undefined;
  /** Failures of its index before it. */
  readonly failuresBefore: IndexFailures;
  /** Restarts of all containers, those of init containers included. */
  readonly restarts: number;
  /** When it terminated, as far as that is known. Epoch milliseconds. */
  readonly endedAtMs: number;
  /** Containers that terminated with an exit code other than 0; those of the pod, then its init containers. */
  readonly failedContainers: readonly ContainerEnd[];
  readonly conditions: readonly { readonly type: string; readonly status: string }[];
}

export function jobPodOf(pod: KubePod): JobPod {
  const { metadata, status = {} } = pod;
  const containers = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
  return {
    ...ownedPodOf(pod),
    isTracked: isTracked(pod),
    isAwaited: metadata.deletionTimestamp !== undefined && (metadata.deletionGracePeriodSeconds ?? 0) > 0,
    index: indexOf(metadata.annotations),
    failuresBefore: failuresBefore(metadata.annotations),
    restarts: containers.reduce((sum, { restartCount }) => sum + (restartCount ?? 0), 0),
    endedAtMs: endedAtMsOf(pod),
    failedContainers: containers.flatMap(({ name = '', state }) => {
      const exitCode = state?.terminated?.exitCode ?? 0;
      return exitCode === 0 ? [] : [{ name, exitCode }];
    }),
    conditions: (status.conditions ?? []).map(({ type, status: value }) => ({ type, status: value })),
  };
}

/**
 * The latest end of its containers if all terminated; else when it stopped being Ready; else when its deletion began;
 * else its creation. For a pod that is evicted from a silent node this is when the node became silent.
 */
function endedAtMsOf({ metadata, status = {} }: KubePod): number {
  const ends = (status.containerStatuses ?? []).map(({ state }) => parseTimeMs(state?.terminated?.finishedAt));
  const known = ends.filter((atMs) => atMs !== undefined);
  if (known.length > 0 && known.length === ends.length) return Math.max(...known);
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  const notReadyMs = ready?.status === 'False' ? parseTimeMs(ready.lastTransitionTime) : undefined;
  if (notReadyMs !== undefined) return notReadyMs;
  const deletionMs = parseTimeMs(metadata.deletionTimestamp);
  if (deletionMs !== undefined) return deletionMs - (metadata.deletionGracePeriodSeconds ?? 0) * 1_000;
  return parseTimeMs(metadata.creationTimestamp) ?? 0;
}

type PodState = Pick<JobPod, 'phase' | 'isDeleting' | 'isAwaited'>;

const isTerminal = ({ phase }: PodState): boolean => phase === 'Succeeded' || phase === 'Failed';

/** It is being deleted and has not terminated. */
export const isTerminating = (pod: PodState): boolean => pod.isAwaited && !isTerminal(pod);

/**
 * With `replacesTerminating` (podReplacementPolicy TerminatingOrFailed) a pod has failed as soon as it is being
 * deleted, so an eviction counts as a failure. Without it, when its node confirms the end.
 */
export const hasFailed = (pod: PodState, replacesTerminating: boolean): boolean =>
  pod.phase === 'Failed' || (pod.isDeleting && pod.phase !== 'Succeeded' && (replacesTerminating || !pod.isAwaited));
