/** The condition ReplicaFailure: pods could not be created or deleted. Pure. */
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { WorkloadCondition } from './workload-types.ts';

const REPLICA_FAILURE = 'ReplicaFailure';

/** Set only if absent; removed by the next sync without a failure. */
export function failureConditions(
  conditions: readonly WorkloadCondition[] = [],
  failure: SyncFailure | undefined,
  nowMs: number,
): WorkloadCondition[] | undefined {
  const others = conditions.filter(({ type }) => type !== REPLICA_FAILURE);
  const stored = conditions.find(({ type }) => type === REPLICA_FAILURE);
  if (failure === undefined) return others.length === 0 ? undefined : others;
  const made = { type: REPLICA_FAILURE, status: 'True' as const, lastTransitionTime: formatTime(nowMs), ...failure };
  return [...others, stored ?? made];
}

/** Type, status and reason are equal. */
export const isSameConditions = (
  left: readonly WorkloadCondition[] = [],
  right: readonly WorkloadCondition[] = [],
): boolean =>
  left.length === right.length &&
  left.every(({ type, status, reason }) =>
    right.some((other) => other.type === type && other.status === status && other.reason === reason),
  );

/** What the creations or deletions of a sync ended with. */
export interface SyncFailure {
  readonly reason: 'FailedCreate' | 'FailedDelete';
  readonly message: string;
}
