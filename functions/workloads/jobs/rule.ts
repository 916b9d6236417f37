/**
 * One sync of a Job: which pods are counted, removed and created, and the status. Pure.
 * Source: pkg/controller/job/job_controller.go (syncJob, manageJob, trackJobStatusAndRemoveFinalizers).
 *
 * A pod is counted in the commit that removes its finalizer. So each pod is counted once. The same commit fails its
 * index.
 */
import { defined } from '../../../shared/defined.ts';
import type { JobCondition, JobStatus, KubeJob } from '../../../shared/kinds/types.ts';
import { formatTime, parseTimeMs } from '../../../shared/kubernetes/time.ts';
import { isActive } from '../owned-pods.rule.ts';
import {
  afterEnds,
  type FailureCount,
  type IndexFailures,
  type LastFailure,
  lastFailures,
  mayCreateFromMs,
  mayReplaceFromMs,
} from './failures.rule.ts';
import {
  countOf,
  formatIndexes,
  hasIndex,
  type Indexes,
  lowestFree,
  parseIndexes,
  withIndexes,
} from './indexes.rule.ts';
import { hasFailed, isTerminating, type JobPod, removedFirst } from './job-pods.rule.ts';
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
import { bySuccessPolicy, type FailureVerdict, successMessageOf, verdictOf } from './policies.rule.ts';

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
  /** Its index has failed with it. */
  readonly failsIndex?: boolean;
}

export interface JobDecision {
  readonly changes: readonly PodChange[];
  readonly create: number;
  /** The indexes of an Indexed Job: one for each created pod. */
  readonly createIndexes: readonly number[];
  /** With backoffLimitPerIndex: the failures of the indexes that have failed before. */
  readonly failuresOf: ReadonlyMap<number, { readonly failures: IndexFailures }>;
  /** Why the Job ends. */
  readonly outcome: JobOutcome | undefined;
  /** No pod is left to wait for: the Job has ended with this sync. */
  readonly isFinal: boolean;
  /** What `outcome` followed from, for a failure. */
  readonly failureInputs: FailureInputs;
  /** What the rule of successPolicy says that is met. */
  readonly successMessage?: string;
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
      indexes: indexTotals(job, counts),
    }),
  };
  const failureCount = afterEnds(before, counts);
  // With a limit for each index, each index waits by itself.
  const createFromMs = isPerIndex(job) ? Number.NEGATIVE_INFINITY : mayCreateFromMs(failureCount);
  const successMessage = isIndexed(job) ? successMessageOf(spec, counts.succeededIndexes) : undefined;
  const decided = storedOutcome(status.conditions) ?? failureOf(failureInputs) ?? bySuccessPolicy(successMessage);
  const managed: Managed =
    decided !== undefined || isDeleting
      ? { remove: [], create: 0, createIndexes: [] }
      : managePods(job, { active, pods, counts, createFromMs, nowMs });
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
    create: managed.create,
    createIndexes: managed.createIndexes,
    failuresOf: counts.lastFailures,
    changes: changes.slice(0, BURST_PODS),
    outcome,
    isFinal: outcome !== undefined && changes.length <= BURST_PODS && !leavesPods(pods, changes),
    failureInputs,
    succeeded: counts.succeeded,
    suspension,
    hasTooManySuccesses: spec.completions !== undefined && counts.succeeded > spec.completions && left === 0,
    startedAtMs,
    ...defined({
      successMessage,
      lookAgainAtMs:
        outcome !== undefined || isDeleting
          ? undefined
          : firstAfter(nowMs, [deadlineMsOf(failureInputs), createFromMs, ...(managed.waitingMs ?? [])]),
    }),
  };
}

interface Counts extends IndexEnds {
  /** Totals with the pods of this sync. */
  readonly succeeded: number;
  readonly failed: number;
  readonly of: ReadonlyMap<JobPod, Count>;
  readonly succeededIndexes: Indexes;
  readonly policyMessage: string | undefined;
  readonly succeededAtMs: readonly number[];
  readonly failedAtMs: readonly number[];
}

const isIndexed = ({ spec }: KubeJob): boolean => spec?.completionMode === 'Indexed';
const isPerIndex = (job: KubeJob): boolean => isIndexed(job) && job.spec?.backoffLimitPerIndex !== undefined;

/** A pod that must not run twice is replaced when its machine confirmed the end, whatever the policy says. */
const replacesTerminating = ({ spec }: KubeJob, { isSingle }: JobPod): boolean =>
  spec?.podReplacementPolicy !== 'Failed' && !isSingle;

const succeededIndexesOf = ({ spec, status }: KubeJob): Indexes =>
  parseIndexes(status?.completedIndexes, spec?.completions ?? 0);

const failedIndexesOf = ({ spec, status }: KubeJob): Indexes =>
  parseIndexes(status?.failedIndexes, spec?.completions ?? 0);

function indexTotals(job: KubeJob, { failedIndexes, succeededIndexes }: Counts): FailureInputs['indexes'] {
  if (!isPerIndex(job)) return undefined;
  const { completions = 0, maxFailedIndexes: max } = job.spec ?? {};
  return { failed: countOf(failedIndexes), succeeded: countOf(succeededIndexes), completions, ...defined({ max }) };
}

/** Terminated pods that are not counted yet. */
function countsOf(job: KubeJob, pods: readonly JobPod[]): Counts {
  const { spec = {}, status = {} } = job;
  const of = new Map<JobPod, Count>();
  const failures = new Map<JobPod, FailureVerdict['kind']>();
  let policyMessage: string | undefined;
  for (const pod of pods) {
    const failed = hasFailed(pod, replacesTerminating(job, pod));
    const verdict = failed ? verdictOf(spec.podFailurePolicy, pod) : undefined;
    if (verdict?.kind === 'failsJob') policyMessage ??= verdict.message;
    if (!pod.isTracked) continue;
    if (pod.phase === 'Succeeded') of.set(pod, 'succeeded');
    else if (verdict !== undefined) {
      of.set(pod, verdict.kind === 'ignored' || isOutOfRange(job, pod) ? 'nothing' : 'failed');
      if (!isOutOfRange(job, pod)) failures.set(pod, verdict.kind);
    }
  }
  const ends = (wanted: Count) => [...of].filter(([, count]) => count === wanted).map(([pod]) => pod);
  const [succeeded, failed] = [ends('succeeded'), ends('failed')];
  const succeededIndexes = withSucceeded(job, succeeded);
  return {
    ...indexFailuresOf(job, { pods, failures, succeededIndexes }),
    succeeded: isIndexed(job) ? countOf(succeededIndexes) : (status.succeeded ?? 0) + succeeded.length,
    failed: (status.failed ?? 0) + failed.length,
    of,
    succeededIndexes,
    policyMessage,
    succeededAtMs: succeeded.map(({ endedAtMs }) => endedAtMs),
    failedAtMs: failed.map(({ endedAtMs }) => endedAtMs),
  };
}

interface IndexEnds {
  readonly failedIndexes: Indexes;
  /** Their pods are counted when they are replaced. */
  readonly lastFailures: ReadonlyMap<number, LastFailure<JobPod>>;
}

function indexFailuresOf(
  job: KubeJob,
  of: {
    readonly pods: readonly JobPod[];
    readonly failures: ReadonlyMap<JobPod, FailureVerdict['kind']>;
    readonly succeededIndexes: Indexes;
  },
): IndexEnds {
  const limit = job.spec?.backoffLimitPerIndex;
  if (!isPerIndex(job) || limit === undefined) return { failedIndexes: [], lastFailures: new Map() };
  const failing = [...of.failures].flatMap(([{ index = 0, failuresBefore }, kind]) => {
    const isOver = kind === 'failsIndex' || (kind !== 'ignored' && failuresBefore.counted >= limit);
    // No index is both.
    return isOver && !hasIndex(of.succeededIndexes, index) ? [index] : [];
  });
  const failedIndexes = withIndexes(failedIndexesOf(job), failing);
  const running = new Set(of.pods.filter(isActive).map(({ index }) => index));
  const isSettled = (index: number): boolean =>
    hasIndex(of.succeededIndexes, index) || hasIndex(failedIndexes, index) || running.has(index);
  const open = [...of.failures].filter(([{ index = 0 }]) => !isSettled(index));
  return { failedIndexes, lastFailures: lastFailures(open.map(([pod, kind]) => [pod, kind === 'ignored'])) };
}

const isOutOfRange = (job: KubeJob, { index }: JobPod): boolean =>
  isIndexed(job) && (index === undefined || index >= (job.spec?.completions ?? 0));

/** Repeated indexes, those out of range, and those that failed before do not count. */
function withSucceeded(job: KubeJob, pods: readonly JobPod[]): Indexes {
  const succeeded = succeededIndexesOf(job);
  if (!isIndexed(job)) return succeeded;
  const failed = failedIndexesOf(job);
  const ended = pods.filter((pod) => !isOutOfRange(job, pod)).map(({ index }) => index!);
  return withIndexes(
    succeeded,
    ended.filter((index) => !hasIndex(failed, index)),
  );
}

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
  /** When indexes that failed may have another pod. Epoch milliseconds. */
  readonly waitingMs?: readonly number[];
}

/** Never both: creations and removals. */
function managePods(
  job: KubeJob,
  of: {
    readonly active: readonly JobPod[];
    readonly pods: readonly JobPod[];
    readonly counts: Counts;
    /** Epoch milliseconds. */
    readonly createFromMs: number;
    readonly nowMs: number;
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
  if (missing <= 0 || of.createFromMs > of.nowMs) return { remove: [], create: 0, createIndexes: [] };
  if (indexes === undefined) return { remove: [], create: missing, createIndexes: [] };
  const taken = [...active, ...waiting].flatMap(({ index }) => index ?? []);
  const settled = [counts.succeededIndexes, counts.failedIndexes, withIndexes([], taken)];
  const free = lowestFree(settled, missing, indexes);
  const fromMs = (index: number): number => mayReplaceFromMs(counts.lastFailures.get(index));
  const createIndexes = free.filter((index) => fromMs(index) <= of.nowMs);
  return { remove: [], create: createIndexes.length, createIndexes, waitingMs: free.map(fromMs) };
}

function changesOf(
  of: { readonly pods: readonly JobPod[]; readonly counts: Counts; readonly removed: readonly JobPod[] },
  outcome: JobOutcome | undefined,
  isDeleting: boolean,
): readonly PodChange[] {
  const { lastFailures: last, failedIndexes } = of.counts;
  const isEnding = outcome !== undefined || isDeleting;
  return of.pods.flatMap((pod): PodChange | readonly [] => {
    const count = of.counts.of.get(pod);
    if (!isEnding && last.get(pod.index ?? -1)?.pod === pod) return [];
    // A pod that the Job has too many of is deleted without being counted.
    if (of.removed.includes(pod)) return { pod, count: 'nothing', remove: true };
    if (count !== undefined) {
      return { pod, count, remove: false, failsIndex: count === 'failed' && hasIndex(failedIndexes, pod.index ?? -1) };
    }
    if (outcome !== undefined && isActive(pod)) {
      return { pod, count: outcome.kind === 'Failed' && pod.isTracked ? 'failed' : 'nothing', remove: true };
    }
    const isReleased = pod.isTracked && isEnding;
    if (!isReleased) return [];
    return { pod, count: outcome?.kind === 'Failed' ? 'failed' : 'nothing', remove: false };
  });
}

/** A pod that is deleted on a node terminates later. */
function leavesPods(pods: readonly JobPod[], changes: readonly PodChange[]): boolean {
  return pods.some(isTerminating) || changes.some(({ remove, pod }) => remove && isActive(pod) && pod.nodeName !== '');
}

function firstAfter(nowMs: number, timesMs: readonly (number | undefined)[]): number | undefined {
  const later = timesMs.flatMap((atMs = 0) => (atMs > nowMs ? atMs : []));
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
  const indexes = withSucceeded(job, succeeded);
  const total = isIndexed(job) ? countOf(indexes) : (status.succeeded ?? 0) + succeeded.length;
  const failing = changes.flatMap(({ failsIndex, pod }) => (failsIndex === true ? (pod.index ?? []) : []));
  return {
    ...status,
    ...(total === 0 ? {} : { succeeded: total }),
    ...(failed.length === 0 ? {} : { failed: (status.failed ?? 0) + failed.length }),
    ...(indexes.length === 0 ? {} : { completedIndexes: formatIndexes(indexes) }),
    ...(isPerIndex(job) ? { failedIndexes: formatIndexes(withIndexes(failedIndexesOf(job), failing)) } : {}),
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
