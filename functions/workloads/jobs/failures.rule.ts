/**
 * How long a Job waits before it replaces a failed pod. Source: pkg/controller/job/backoff_utils.go.
 *
 * Failures of one index of a Job with backoffLimitPerIndex. Each pod carries those before it, so the last failed pod of
 * an index keeps its finalizer until its replacement exists. Source: pkg/controller/job/indexed_job_utils.go
 * (getPodsWithDelayedDeletionPerIndex, getNewIndexFailureCounts).
 */
import { backoffMs } from '../../../shared/backoff.ts';

const WAITS = { firstMs: 10_000, limitMs: 600_000 };

/** Failures since the last success. */
export interface FailureCount {
  readonly failures: number;
  /** When the last one ended. Epoch milliseconds; 0 without a failure. */
  readonly lastEndedAtMs: number;
}

export const NO_FAILURES: FailureCount = Object.freeze({ failures: 0, lastEndedAtMs: 0 });

/** The count after more pods were counted, by the times at which they ended. */
export function afterEnds(
  before: FailureCount,
  { succeededAtMs, failedAtMs }: { readonly succeededAtMs: readonly number[]; readonly failedAtMs: readonly number[] },
): FailureCount {
  if (succeededAtMs.length === 0) {
    return failedAtMs.length === 0
      ? before
      : { failures: before.failures + failedAtMs.length, lastEndedAtMs: Math.max(...failedAtMs) };
  }
  const successMs = Math.max(...succeededAtMs);
  const later = failedAtMs.filter((atMs) => atMs > successMs);
  return later.length === 0 ? NO_FAILURES : { failures: later.length, lastEndedAtMs: Math.max(...later) };
}

/** From when a pod may be created. Epoch milliseconds. */
export function mayCreateFromMs({ failures, lastEndedAtMs }: FailureCount): number {
  if (failures === 0) return Number.NEGATIVE_INFINITY;
  return lastEndedAtMs + backoffMs(WAITS, failures - 1);
}

const FAILURES = 'batch.kubernetes.io/job-index-failure-count';
const IGNORED = 'batch.kubernetes.io/job-index-ignored-failure-count';
const INT32_MAX = 2 ** 31 - 1;

export interface IndexFailures {
  /** Those that count towards the limit of the index. */
  readonly counted: number;
  /** Those that a rule of podFailurePolicy ignores. */
  readonly ignored: number;
}

export const NO_INDEX_FAILURES: IndexFailures = Object.freeze({ counted: 0, ignored: 0 });

/** Anybody may write the annotations: another form counts as 0. */
function countOf(text: string | undefined): number {
  const count = /^\+?\d+$/.test(text ?? '') ? Number(text) : 0;
  return count <= INT32_MAX ? count : 0;
}

/** Failures before the pod. */
export const failuresBefore = (annotations: Readonly<Record<string, string>> = {}): IndexFailures => ({
  counted: countOf(annotations[FAILURES]),
  ignored: countOf(annotations[IGNORED]),
});

export const failureAnnotations = ({ counted, ignored }: IndexFailures): Readonly<Record<string, string>> => ({
  [FAILURES]: String(counted),
  ...(ignored === 0 ? {} : { [IGNORED]: String(ignored) }),
});

/** The last failure of an index that no pod has replaced. */
export interface LastFailure<Pod> {
  readonly pod: Pod;
  /** With that of the pod. */
  readonly failures: IndexFailures;
}

interface FailedPod {
  readonly index: number | undefined;
  readonly endedAtMs: number;
  readonly failuresBefore: IndexFailures;
}

const total = ({ counted, ignored }: IndexFailures): number => counted + ignored;

/** @param failed pods that are not counted yet, of indexes that are to be replaced; true: the failure is ignored */
export function lastFailures<Pod extends FailedPod>(
  failed: Iterable<readonly [Pod, boolean]>,
): ReadonlyMap<number, LastFailure<Pod>> {
  const last = new Map<number, LastFailure<Pod>>();
  for (const [pod, isIgnored] of failed) {
    const { index = 0, failuresBefore: before } = pod;
    const failures = isIgnored
      ? { ...before, ignored: before.ignored + 1 }
      : { ...before, counted: before.counted + 1 };
    const other = last.get(index);
    if (other === undefined || (total(other.failures) <= total(failures) && other.pod.endedAtMs <= pod.endedAtMs)) {
      last.set(index, { pod, failures });
    }
  }
  return last;
}

/** From when the index may have another pod. Epoch milliseconds. */
export const mayReplaceFromMs = (last: LastFailure<FailedPod> | undefined): number =>
  last === undefined
    ? Number.NEGATIVE_INFINITY
    : mayCreateFromMs({ failures: total(last.failures), lastEndedAtMs: last.pod.endedAtMs });
