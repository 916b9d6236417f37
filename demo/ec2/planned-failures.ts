/** Counts the calls of the cloud in memory, and makes them fail as a test or a simulation plans it. */
import type { VolumeAnswer } from '../../shared/fleet/instances/cloud.ts';

/** A code of EC2's, or `timeout`. */
export type CloudTrouble = string;

export type CloudFailure = Extract<VolumeAnswer, { kind: 'failed' }>;

/** Calls so far, as many as the EC2 adapter would have made. */
export interface CloudCalls {
  readonly describeInstances: number;
  readonly describeVolumes: number;
  readonly detachVolume: number;
}

/** Which calls fail: after `after` successful ones the next `calls`, by default every call from now on. */
export interface FailurePlan {
  readonly calls?: number;
  readonly after?: number;
}

export interface PlannedFailures {
  /** Null ends the failures. */
  plan(trouble: CloudTrouble | null, plan?: FailurePlan): void;
  /** Counts one call; returns its failure, or undefined if it succeeds. */
  call(name: keyof CloudCalls): CloudFailure | undefined;
  calls(): CloudCalls;
}

/** Every other code is an error. */
const CAUSES: Readonly<Record<string, CloudFailure['cause']>> = {
  Throttling: 'throttled',
  RequestLimitExceeded: 'throttled',
  timeout: 'timeout',
};

export function plannedFailures(): PlannedFailures {
  const calls = { describeInstances: 0, describeVolumes: 0, detachVolume: 0 };
  let trouble: CloudTrouble | null = null;
  let failingCalls = Number.POSITIVE_INFINITY;
  let successfulCalls = 0;
  return {
    plan(next, { calls: count = Number.POSITIVE_INFINITY, after = 0 } = {}) {
      trouble = next;
      failingCalls = count;
      successfulCalls = after;
    },

    call(name) {
      calls[name] += 1;
      if (successfulCalls > 0) {
        successfulCalls -= 1;
        return undefined;
      }
      if (trouble === null || failingCalls <= 0) return undefined;
      failingCalls -= 1;
      return { kind: 'failed', cause: CAUSES[trouble] ?? 'error', message: `EC2: ${trouble}` };
    },

    calls: () => ({ ...calls }),
  };
}
