/**
 * The pods of a Job: what its controller reads of them, their template, and which are removed first when it has too
 * many. Sources: pkg/controller/job/{job_controller,backoff_utils,indexed_job_utils}.go (activePodsForRemoval,
 * appendDuplicatedIndexPodsForRemoval), and ActivePods.Less in pkg/controller/controller_utils.go.
 */
import type { Container, KubeJob, KubePod, PodTemplateSpec } from '../../../shared/kinds/types.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import { isTracked, type OwnedPod, ownedPodOf, TRACKING } from '../owned-pods.rule.ts';
import { podNameFor } from '../template.rule.ts';
import { failureAnnotations, failuresBefore, type IndexFailures, NO_INDEX_FAILURES } from './failures.rule.ts';
import { INDEX, indexOf } from './indexes.rule.ts';

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

const INDEX_VARIABLE = 'JOB_COMPLETION_INDEX';
/** Characters of a generated name without its suffix. */
const PREFIX_CHARACTERS_MAX = 58;

/** The template with the finalizer, and for an Indexed Job with the index of the pod and the failures before it. */
export function podTemplateOf(
  { metadata, spec }: KubeJob,
  index: number | undefined,
  failures: IndexFailures = NO_INDEX_FAILURES,
): PodTemplateSpec {
  const { template = {} } = spec ?? {};
  const finalizers = [...(template.metadata?.finalizers ?? []).filter((each) => each !== TRACKING), TRACKING];
  const tracked = { ...template, metadata: { ...template.metadata, finalizers } };
  if (index === undefined) return tracked;
  const value = String(index);
  const { containers = [], initContainers } = template.spec ?? {};
  return {
    metadata: {
      ...tracked.metadata,
      annotations: {
        ...tracked.metadata.annotations,
        [INDEX]: value,
        ...(spec?.backoffLimitPerIndex === undefined ? {} : failureAnnotations(failures)),
      },
      labels: { ...tracked.metadata.labels, [INDEX]: value },
    },
    spec: {
      ...template.spec,
      hostname: `${metadata.name ?? ''}-${value}`,
      containers: containers.map(withIndex),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(withIndex) }),
    },
  };
}

/** A variable of this name in the template stays. */
function withIndex(container: Container): Container {
  const { env = [] } = container;
  if (env.some(({ name }) => name === INDEX_VARIABLE)) return container;
  const fieldRef = { apiVersion: 'v1', fieldPath: `metadata.labels['${INDEX}']` };
  return { ...container, env: [...env, { name: INDEX_VARIABLE, valueFrom: { fieldRef } }] };
}

export function jobPodName(
  { metadata: { name = '', uid = '' } }: KubeJob,
  index: number | undefined,
  seed: { readonly fence: number; readonly position: number },
): string {
  if (index === undefined) return podNameFor(name, { uid, ...seed });
  const ending = `-${index}`;
  return podNameFor(name.slice(0, PREFIX_CHARACTERS_MAX - 1 - ending.length) + ending, { uid, ...seed });
}

const PHASE_ORDER = { Pending: 0, Unknown: 1, Running: 2, Succeeded: 2, Failed: 2 } as const;

/**
 * At least `count` pods. Of an Indexed Job also those without an index in range, and all but one of each index.
 *
 * @param completions of an Indexed Job; undefined for any other
 */
export function removedFirst(
  pods: readonly JobPod[],
  count: number,
  completions: number | undefined,
): readonly JobPod[] {
  const ordered = pods.toSorted(compare);
  if (count >= pods.length) return ordered;
  const misplaced = completions === undefined ? [] : misplacedPods(ordered, completions);
  const others = ordered.filter((pod) => !misplaced.includes(pod));
  return [...misplaced, ...others.slice(0, Math.max(0, count - misplaced.length))];
}

function misplacedPods(ordered: readonly JobPod[], completions: number): readonly JobPod[] {
  const last = new Map(ordered.map((pod) => [pod.index, pod]));
  return ordered.filter((pod) => pod.index === undefined || pod.index >= completions || last.get(pod.index) !== pod);
}

/** Negative: `left` is removed first. */
function compare(left: JobPod, right: JobPod): number {
  return (
    Number(left.nodeName !== '') - Number(right.nodeName !== '') ||
    PHASE_ORDER[left.phase] - PHASE_ORDER[right.phase] ||
    Number(left.ready) - Number(right.ready) ||
    (left.ready && right.ready ? younger(left.readyChangedAtMs, right.readyChangedAtMs) : 0) ||
    right.restartsMax - left.restartsMax ||
    younger(left.createdAtMs, right.createdAtMs) ||
    (left.name < right.name ? -1 : 1)
  );
}

/** The later time first; a missing one counts as the latest. */
function younger(left: number | undefined, right: number | undefined): number {
  if (left === right) return 0;
  return (right ?? Number.POSITIVE_INFINITY) - (left ?? Number.POSITIVE_INFINITY);
}
