/** How long a Job waits before it replaces a failed pod. Source: pkg/controller/job/backoff_utils.go. */
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
