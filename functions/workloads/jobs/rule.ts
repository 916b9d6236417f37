/**
 * One sync of a Job: which pods are counted, removed and created, and the status. Pure.
 * Source: pkg/controller/job/job_controller.go (syncJob, manageJob, trackJobStatusAndRemoveFinalizers).
 *
 * A pod is counted in the commit that removes its finalizer. So each pod is counted once.
 */
import { defined } from '../../../shared/defined.ts';
import type { JobCondition, JobStatus, KubeJob } from '../../../shared/kinds/types.ts';
import { formatTime, parseTimeMs } from '../../../shared/kubernetes/time.ts';
import { isActive } from '../pods/owned-pod.rule.ts';
import { afterEnds, type FailureCount, mayCreateFromMs } from './backoff.rule.ts';
import { verdictOf } from './failure-policy.rule.ts';
import { formatIndexes, lowestFree, parseIndexes } from './indexes.rule.ts';
import { hasFailed, isTerminating, type JobPod } from './job-pod.rule.ts';
import {
  COMPLETE,
  deadlineMsOf,
  type FailureInputs,
  failureOf,
  hasEnoughSuccesses,
  type JobOutcome,
  outcomeConditions,
  storedOutcome,
} from './outcome.rule.ts';
import { removedFirst } from './removal-order.rule.ts';

/** Creations, and removals and counts, of one sync. */
export const BURST_PODS = 500;
const BACKOFF_LIMIT = 6;

export interface JobSync {
  readonly job: KubeJob;
  /** Pods that it controls. */
  readonly pods: readonly JobPod[];
  readonly failureCount: FailureCount;
  readonly nowMs: number;
}

export type Count = 'succeeded' | 'failed' | 'nothing';

/** A pod that loses its finalizer, or is deleted, or both. */
export interface PodChange {
  readonly pod: JobPod;
  readonly count: Count;
  readonly remove: boolean;
}

export interface JobDecision {
  readonly changes: readonly PodChange[];
  readonly create: number;
  /** The indexes of an Indexed Job: one for each created pod. */
  readonly createIndexes: readonly number[];
  /** Why the Job ends. */
  readonly outcome: JobOutcome | undefined;
  /** No pod is left to wait for: the Job has ended with this sync. */
  readonly isFinal: boolean;
  /** What `outcome` followed from, for a failure. */
  readonly failureInputs: FailureInputs;
  /** Pods, or indexes, that succeeded, with those of this sync. */
  readonly succeeded: number;
  readonly suspension: 'suspended' | 'resumed' | undefined;
  /** More pods succeeded than are wanted. */
  readonly hasTooManySuccesses: boolean;
  readonly startedAtMs: number | undefined;
  /** When a time limit ends. Epoch milliseconds; absent: none runs. */
  readonly lookAgainAtMs?: number;
}

export function decideJob({ job, pods, failureCount: before, nowMs }: JobSync): JobDecision {
  const { spec = {}, status = {}, metadata } = job;
  const isDeleting = metadata.deletionTimestamp !== undefined;
  const isSuspended = spec.suspend === true;
  const active = pods.filter(isActive);
  const counts = countsOf(job, pods);
  const hasSuspended = status.conditions?.find(({ type }) => type === 'Suspended')?.status === 'True';
  // A resumed Job starts anew, before its deadline is compared: its suspension does not count.
  const startedAtMs =
    hasSuspended && !isSuspended ? nowMs : (parseTimeMs(status.startTime) ?? (isSuspended ? undefined : nowMs));
  const failureInputs: FailureInputs = {
    failed: counts.failed,
    backoffLimit: spec.backoffLimit ?? BACKOFF_LIMIT,
    nowMs,
    ...defined({
      policyMessage: counts.policyMessage,
      restarts: restartsOf(job, pods),
      startedAtMs,
      activeDeadlineSeconds: isSuspended ? undefined : spec.activeDeadlineSeconds,
    }),
  };
  const failureCount = afterEnds(before, counts);
  const decided = storedOutcome(status.conditions) ?? failureOf(failureInputs);
  const managed =
    decided !== undefined || isDeleting
      ? { remove: [], create: 0, createIndexes: [] }
      : managePods(job, { active, pods, counts, mayCreate: mayCreateFromMs(failureCount) <= nowMs });
  const left = active.length - managed.remove.length;
  const outcome =
    decided ??
    (!isDeleting && left === 0 && hasEnoughSuccesses(counts.succeeded, spec.completions) ? COMPLETE : undefined);
  const changes = changesOf({ pods, counts, removed: managed.remove }, outcome, isDeleting);
  const suspension =
    outcome !== undefined || isDeleting || isSuspended === hasSuspended
      ? undefined
      : isSuspended
        ? ('suspended' as const)
        : ('resumed' as const);
  return {
    ...managed,
    changes: changes.slice(0, BURST_PODS),
    outcome,
    isFinal: outcome !== undefined && changes.length <= BURST_PODS && !leavesPods(pods, changes),
    failureInputs,
    succeeded: counts.succeeded,
    suspension,
    hasTooManySuccesses: spec.completions !== undefined && counts.succeeded > spec.completions && left === 0,
    startedAtMs,
    ...defined({ lookAgainAtMs: nextTimeMs({ failureInputs, failureCount, outcome, isDeleting }) }),
  };
}

interface Counts {
  /** Totals with the pods of this sync. */
  readonly succeeded: number;
  readonly failed: number;
  readonly of: ReadonlyMap<JobPod, Count>;
  readonly succeededIndexes: ReadonlySet<number>;
  readonly policyMessage: string | undefined;
  readonly succeededAtMs: readonly number[];
  readonly failedAtMs: readonly number[];
}

const isIndexed = ({ spec }: KubeJob): boolean => spec?.completionMode === 'Indexed';

/** A pod that must not run twice is replaced when its machine confirmed the end, whatever the policy says. */
const replacesTerminating = ({ spec }: KubeJob, { isSingle }: JobPod): boolean =>
  spec?.podReplacementPolicy !== 'Failed' && !isSingle;

const succeededIndexesOf = ({ spec, status }: KubeJob): ReadonlySet<number> =>
  parseIndexes(status?.completedIndexes, spec?.completions ?? 0);

/** Terminated pods that are not counted yet. */
function countsOf(job: KubeJob, pods: readonly JobPod[]): Counts {
  const { spec = {}, status = {} } = job;
  const of = new Map<JobPod, Count>();
  let policyMessage: string | undefined;
  for (const pod of pods) {
    const failed = hasFailed(pod, replacesTerminating(job, pod));
    const verdict = failed ? verdictOf(spec.podFailurePolicy, pod) : undefined;
    if (verdict?.kind === 'failsJob') policyMessage ??= verdict.message;
    if (!pod.isTracked) continue;
    if (pod.phase === 'Succeeded') of.set(pod, 'succeeded');
    else if (failed) of.set(pod, verdict?.kind === 'ignored' || isOutOfRange(job, pod) ? 'nothing' : 'failed');
  }
  const ends = (wanted: Count) => [...of].filter(([, count]) => count === wanted).map(([pod]) => pod);
  const [succeeded, failed] = [ends('succeeded'), ends('failed')];
  const succeededIndexes = withIndexes(job, succeededIndexesOf(job), succeeded);
  return {
    succeeded: isIndexed(job) ? succeededIndexes.size : (status.succeeded ?? 0) + succeeded.length,
    failed: (status.failed ?? 0) + failed.length,
    of,
    succeededIndexes,
    policyMessage,
    succeededAtMs: succeeded.map(({ endedAtMs }) => endedAtMs),
    failedAtMs: failed.map(({ endedAtMs }) => endedAtMs),
  };
}

const isOutOfRange = (job: KubeJob, { index }: JobPod): boolean =>
  isIndexed(job) && (index === undefined || index >= (job.spec?.completions ?? 0));

/** Repeated indexes, and those out of range, do not count. */
const withIndexes = (job: KubeJob, indexes: ReadonlySet<number>, pods: readonly JobPod[]): ReadonlySet<number> =>
  isIndexed(job)
    ? new Set([...indexes, ...pods.filter((pod) => !isOutOfRange(job, pod)).map(({ index }) => index!)])
    : indexes;

/** With the restart policy OnFailure restarts count as failures. */
function restartsOf({ spec }: KubeJob, pods: readonly JobPod[]): number | undefined {
  if (spec?.template?.spec?.restartPolicy !== 'OnFailure') return undefined;
  return pods
    .filter(({ phase }) => phase === 'Running' || phase === 'Pending')
    .reduce((sum, { restarts }) => sum + restarts, 0);
}

/** How many pods are to be active. Exported for the replay of decisions. */
export function wantedActive(of: {
  readonly parallelism: number;
  readonly completions?: number;
  readonly succeeded: number;
  readonly active: number;
}): number {
  const { parallelism, completions, succeeded, active } = of;
  if (completions === undefined) return succeeded > 0 ? active : parallelism;
  return Math.max(0, Math.min(parallelism, completions - succeeded));
}

interface Managed {
  readonly remove: readonly JobPod[];
  readonly create: number;
  readonly createIndexes: readonly number[];
}

/** Never both: creations and removals. */
function managePods(
  job: KubeJob,
  of: {
    readonly active: readonly JobPod[];
    readonly pods: readonly JobPod[];
    readonly counts: Counts;
    readonly mayCreate: boolean;
  },
): Managed {
  const { spec = {} } = job;
  const { active, pods, counts } = of;
  const { completions, parallelism = 1, suspend } = spec;
  const wanted =
    suspend === true
      ? 0
      : wantedActive({ parallelism, ...defined({ completions }), succeeded: counts.succeeded, active: active.length });
  const surplus = Math.max(0, active.length - wanted);
  const indexes = isIndexed(job) ? (completions ?? 0) : undefined;
  const remove = removedFirst(active, surplus, indexes).slice(0, BURST_PODS);
  if (remove.length > 0) return { remove, create: 0, createIndexes: [] };
  const waiting = pods.filter((pod) => isTerminating(pod) && !replacesTerminating(job, pod));
  const missing = Math.min(wanted - waiting.length - active.length, BURST_PODS);
  if (missing <= 0 || !of.mayCreate) return { remove: [], create: 0, createIndexes: [] };
  if (indexes === undefined) return { remove: [], create: missing, createIndexes: [] };
  const used = new Set([...counts.succeededIndexes, ...[...active, ...waiting].flatMap(({ index }) => index ?? [])]);
  const createIndexes = lowestFree(used, missing, indexes);
  return { remove: [], create: createIndexes.length, createIndexes };
}

function changesOf(
  of: { readonly pods: readonly JobPod[]; readonly counts: Counts; readonly removed: readonly JobPod[] },
  outcome: JobOutcome | undefined,
  isDeleting: boolean,
): readonly PodChange[] {
  return of.pods.flatMap((pod): PodChange | readonly [] => {
    const count = of.counts.of.get(pod);
    // A pod that the Job has too many of is deleted without being counted.
    if (of.removed.includes(pod)) return { pod, count: 'nothing', remove: true };
    if (count !== undefined) return { pod, count, remove: false };
    if (outcome !== undefined && isActive(pod)) {
      return { pod, count: outcome.kind === 'Failed' && pod.isTracked ? 'failed' : 'nothing', remove: true };
    }
    const isReleased = pod.isTracked && (outcome !== undefined || isDeleting);
    if (!isReleased) return [];
    return { pod, count: outcome?.kind === 'Failed' ? 'failed' : 'nothing', remove: false };
  });
}

/** A pod that is deleted on a node terminates later. */
function leavesPods(pods: readonly JobPod[], changes: readonly PodChange[]): boolean {
  return pods.some(isTerminating) || changes.some(({ remove, pod }) => remove && isActive(pod) && pod.nodeName !== '');
}

function nextTimeMs({
  failureInputs,
  failureCount,
  outcome,
  isDeleting,
}: Pick<JobDecision, 'failureInputs' | 'outcome'> & {
  readonly failureCount: FailureCount;
  readonly isDeleting: boolean;
}): number | undefined {
  if (outcome !== undefined || isDeleting) return undefined;
  const { nowMs } = failureInputs;
  const later = [deadlineMsOf(failureInputs) ?? 0, mayCreateFromMs(failureCount)].filter((atMs) => atMs > nowMs);
  return later.length === 0 ? undefined : Math.min(...later);
}

/** The status after a part of the decision's changes was committed. */
export function partStatus(
  job: KubeJob,
  changes: readonly PodChange[],
  decision: JobDecision,
  nowMs: number,
): JobStatus {
  const counted = withCounts(job, changes);
  const conditions = conditionsAfter(
    counted.conditions,
    { outcome: decision.outcome, isFinal: false, suspension: undefined },
    nowMs,
  );
  return conditions === undefined ? counted : { ...counted, conditions };
}

function withCounts(job: KubeJob, changes: readonly PodChange[]): JobStatus {
  const { status = {} } = job;
  const counted = (wanted: Count) => changes.filter(({ count }) => count === wanted).map(({ pod }) => pod);
  const [succeeded, failed] = [counted('succeeded'), counted('failed')];
  const indexes = withIndexes(job, succeededIndexesOf(job), succeeded);
  const total = isIndexed(job) ? indexes.size : (status.succeeded ?? 0) + succeeded.length;
  return {
    ...status,
    ...(total === 0 ? {} : { succeeded: total }),
    ...(failed.length === 0 ? {} : { failed: (status.failed ?? 0) + failed.length }),
    ...(indexes.size === 0 ? {} : { completedIndexes: formatIndexes(indexes) }),
  };
}

/** The status at the end of a sync. `job` has the counts of all changes. */
export function finalStatus(
  { job, pods, nowMs }: Pick<JobSync, 'job' | 'pods' | 'nowMs'>,
  decision: JobDecision,
  createdPods: number,
): JobStatus {
  const { status = {} } = job;
  const removed = new Set(decision.changes.filter(({ remove }) => remove).map(({ pod }) => pod));
  const kept = pods.filter((pod) => isActive(pod) && !removed.has(pod));
  const active = kept.length + createdPods;
  const held = [...removed].filter(({ nodeName }) => nodeName !== '').length;
  const { outcome, isFinal, suspension, startedAtMs } = decision;
  const conditions = conditionsAfter(status.conditions, { outcome, isFinal, suspension }, nowMs);
  const { active: _active, conditions: _conditions, ...others } = status;
  return {
    ...others,
    // Zero is left out where Go's encoding of the field does.
    ...(active === 0 ? {} : { active }),
    ready: kept.filter(({ ready }) => ready).length,
    terminating: pods.filter(isTerminating).length + held,
    uncountedTerminatedPods: {},
    ...defined({
      startTime: startedAtMs === undefined ? undefined : formatTime(startedAtMs),
      completionTime:
        status.completionTime ?? (isFinal && outcome?.kind === 'Complete' ? formatTime(nowMs) : undefined),
      conditions,
    }),
  };
}

function conditionsAfter(
  stored: readonly JobCondition[] | undefined,
  { outcome, isFinal, suspension }: Pick<JobDecision, 'outcome' | 'isFinal' | 'suspension'>,
  nowMs: number,
): JobCondition[] | undefined {
  const at = formatTime(nowMs);
  const conditions = new Map((stored ?? []).map((condition) => [condition.type ?? '', condition]));
  const set = (type: string, status: 'True' | 'False', reason: string, message: string) => {
    if (conditions.get(type)?.status === status) return;
    conditions.set(type, { type, status, reason, message, lastProbeTime: at, lastTransitionTime: at });
  };
  if (suspension === 'suspended') set('Suspended', 'True', 'JobSuspended', 'Job suspended');
  if (suspension === 'resumed') set('Suspended', 'False', 'JobResumed', 'Job resumed');
  if (outcome !== undefined) {
    for (const type of outcomeConditions(outcome, isFinal)) set(type, 'True', outcome.reason, outcome.message);
  }
  return conditions.size === 0 ? undefined : [...conditions.values()];
}
