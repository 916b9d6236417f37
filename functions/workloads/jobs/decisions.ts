/** Decision records of the Job controller: pods that it created and removed, and how the Job ended. */
import {
  aboutWorkload,
  type DraftOf,
  type RecordedWorkload,
  type ReplayRules,
} from '../../../shared/decisions/decision-record.ts';
import { defined } from '../../../shared/defined.ts';
import { COMPLETE, type FailureInputs, failureOf, hasEnoughSuccesses, type JobOutcome } from './outcome.rule.ts';
import { bySuccessPolicy } from './policies.rule.ts';
import { type JobDecision, wantedActive } from './rule.ts';

interface WantedInputs {
  readonly parallelism: number;
  /** Absent: one success is enough. */
  readonly completions?: number;
  readonly succeeded: number;
  readonly active: number;
  readonly isSuspended: boolean;
}

interface JobInputs {
  readonly jobWantedPods: WantedInputs;
  readonly jobOutcome: {
    readonly failure: FailureInputs;
    readonly completions?: number;
    readonly succeeded: number;
    readonly successMessage?: string;
  };
  readonly jobExpired: { readonly finishedAtMs: number; readonly ttlSeconds: number };
}

export type JobDraft = DraftOf<JobInputs>;

/** A Job, as far as a record names it. */
interface RecordedJob extends RecordedWorkload {
  readonly spec?: { readonly parallelism?: number; readonly completions?: number; readonly suspend?: boolean };
}

/** Pods of the Job before the transaction of a record. */
interface PodNumbers {
  readonly succeeded: number;
  readonly active: number;
}

const wantedInputs = ({ spec = {} }: RecordedJob, numbers: PodNumbers): WantedInputs => ({
  parallelism: spec.parallelism ?? 1,
  ...numbers,
  isSuspended: spec.suspend === true,
  ...defined({ completions: spec.completions }),
});

const wantedOf = (inputs: WantedInputs): number => (inputs.isSuspended ? 0 : wantedActive(inputs));

/** One transaction of creations, or of removals of pods that the Job has too many of. */
export function jobPodsDraft(
  act: 'PodsCreated' | 'PodsDeleted',
  job: RecordedJob,
  { numbers, names }: { readonly numbers: PodNumbers; readonly names: readonly string[] },
  nowMs: number,
): JobDraft {
  const inputs = wantedInputs(job, numbers);
  const wanted = wantedOf(inputs);
  const verb = act === 'PodsCreated' ? 'created' : 'deleted';
  return {
    act,
    about: aboutWorkload('Job', job),
    atMs: nowMs,
    reason: `${wanted} pods are wanted and ${numbers.active} are active: ${verb} ${names.join(', ')}`,
    rule: 'jobWantedPods',
    inputs,
    outcome: { wanted },
  };
}

export function jobFinishedDraft(
  job: RecordedJob,
  of: Pick<JobDecision, 'failureInputs' | 'successMessage' | 'succeeded'> & { readonly outcome: JobOutcome },
  nowMs: number,
): JobDraft {
  const { outcome, failureInputs, succeeded, successMessage } = of;
  const completions = job.spec?.completions;
  return {
    act: 'JobFinished',
    about: aboutWorkload('Job', job),
    atMs: nowMs,
    reason: `${outcome.reason}: ${succeeded} pods succeeded, ${failureInputs.failed} failed`,
    rule: 'jobOutcome',
    inputs: { failure: failureInputs, succeeded, ...defined({ completions, successMessage }) },
    outcome: { kind: outcome.kind, reason: outcome.reason },
  };
}

export function jobExpiredDraft(job: RecordedJob, inputs: JobInputs['jobExpired'], nowMs: number): JobDraft {
  return {
    act: 'JobExpired',
    about: aboutWorkload('Job', job),
    atMs: nowMs,
    reason: `it finished more than ${inputs.ttlSeconds} s ago (ttlSecondsAfterFinished)`,
    rule: 'jobExpired',
    inputs,
    outcome: { expired: true },
  };
}

export const jobReplay: ReplayRules<JobInputs> = {
  jobWantedPods: (inputs) => ({ wanted: wantedOf(inputs) }),
  jobOutcome({ failure, completions, succeeded, successMessage }) {
    const outcome =
      failureOf(failure) ??
      bySuccessPolicy(successMessage) ??
      (hasEnoughSuccesses(succeeded, completions) ? COMPLETE : undefined);
    return outcome === undefined ? { kind: 'unfinished' } : { kind: outcome.kind, reason: outcome.reason };
  },
  jobExpired: ({ finishedAtMs, ttlSeconds }, { atMs }) => ({ expired: atMs >= finishedAtMs + ttlSeconds * 1_000 }),
};
