/** Whether a Job has failed or is complete. Pure. Source: pkg/controller/job/job_controller.go (syncJob). */
import type { JobCondition } from '../../../shared/kinds/types.ts';

export type JobOutcome =
  | { readonly kind: 'Complete'; readonly reason: string; readonly message: string }
  | { readonly kind: 'Failed'; readonly reason: string; readonly message: string };

export const COMPLETE: JobOutcome = Object.freeze({
  kind: 'Complete',
  reason: 'CompletionsReached',
  message: 'Reached expected number of succeeded pods',
});

/** Without `completions` one success is enough. The Job is complete when, besides, no pod is active. */
export const hasEnoughSuccesses = (succeeded: number, completions: number | undefined): boolean =>
  completions === undefined ? succeeded > 0 : succeeded >= completions;

/** What the failure of a Job depends on. Times are epoch milliseconds. */
export interface FailureInputs {
  /** The message of a rule of podFailurePolicy with the action FailJob. */
  readonly policyMessage?: string;
  readonly failed: number;
  readonly backoffLimit: number;
  /** Restarts of the containers of all pods that have not terminated; absent with the restart policy Never. */
  readonly restarts?: number;
  readonly startedAtMs?: number;
  /** Absent: no deadline, or the Job is suspended. */
  readonly activeDeadlineSeconds?: number;
  readonly nowMs: number;
  /** With backoffLimitPerIndex. `max`: maxFailedIndexes. */
  readonly indexes?: {
    readonly failed: number;
    readonly succeeded: number;
    readonly completions: number;
    readonly max?: number;
  };
}

/** The tests in upstream's order; undefined: the Job continues. */
export function failureOf(inputs: FailureInputs): JobOutcome | undefined {
  const { policyMessage, failed, backoffLimit, restarts } = inputs;
  if (policyMessage !== undefined) return { kind: 'Failed', reason: 'PodFailurePolicy', message: policyMessage };
  const hasTooManyRestarts = restarts !== undefined && (backoffLimit === 0 ? restarts > 0 : restarts >= backoffLimit);
  if (failed > backoffLimit || hasTooManyRestarts) {
    const message = 'Job has reached the specified backoff limit';
    return { kind: 'Failed', reason: 'BackoffLimitExceeded', message };
  }
  const deadlineMs = deadlineMsOf(inputs);
  if (deadlineMs !== undefined && inputs.nowMs >= deadlineMs) {
    return { kind: 'Failed', reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' };
  }
  const { failed: failedIndexes = 0, succeeded = 0, completions = 0, max = failedIndexes } = inputs.indexes ?? {};
  if (failedIndexes > max) {
    const message = 'Job has exceeded the specified maximal number of failed indexes';
    return { kind: 'Failed', reason: 'MaxFailedIndexesExceeded', message };
  }
  if (failedIndexes > 0 && failedIndexes + succeeded >= completions) {
    return { kind: 'Failed', reason: 'FailedIndexes', message: 'Job has failed indexes' };
  }
  return undefined;
}

export function deadlineMsOf({
  startedAtMs,
  activeDeadlineSeconds,
}: Pick<FailureInputs, 'startedAtMs' | 'activeDeadlineSeconds'>): number | undefined {
  if (startedAtMs === undefined || activeDeadlineSeconds === undefined) return undefined;
  return startedAtMs + activeDeadlineSeconds * 1_000;
}

/** A decision that an earlier sync stored: it is final. */
export function storedOutcome(conditions: readonly JobCondition[] = []): JobOutcome | undefined {
  const isTrue = (wanted: string) => conditions.find(({ type, status }) => type === wanted && status === 'True');
  const failure = isTrue('FailureTarget');
  if (failure !== undefined) {
    return { kind: 'Failed', reason: failure.reason ?? '', message: failure.message ?? '' };
  }
  const { status, reason = COMPLETE.reason, message = COMPLETE.message } = isTrue('SuccessCriteriaMet') ?? {};
  return status === undefined ? undefined : { kind: 'Complete', reason, message };
}

/** Complete or Failed: nothing about the Job changes any more. */
export const finishedCondition = (conditions: readonly JobCondition[] = []): JobCondition | undefined =>
  conditions.find(({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True');

/** The condition while pods terminate, and the final one. */
const CONDITIONS_OF = {
  Complete: ['SuccessCriteriaMet', 'Complete'],
  Failed: ['FailureTarget', 'Failed'],
} as const;

export const outcomeConditions = ({ kind }: JobOutcome, isFinal: boolean): readonly string[] =>
  CONDITIONS_OF[kind].slice(0, isFinal ? 2 : 1);
