/**
 * The status of a Deployment and its conditions. Source: pkg/controller/deployment/{sync,progress}.go,
 * deployment/util/deployment_util.go.
 */
import { defined } from '../../../shared/defined.ts';
import { formatTime, parseTimeMs } from '../../../shared/kubernetes/time.ts';
import type { KubeDeployment, KubeReplicaSet, WorkloadCondition, WorkloadStatus } from '../workload-types.ts';
import { fencepostsOf, unavailableMax } from './replica-sets.rule.ts';

/** progressDeadlineSeconds of this value is none. */
const NO_DEADLINE_SECONDS = 2 ** 31 - 1;

export interface RolloutTimes {
  readonly nowMs: number;
  /** A rollout gives up no pod now, and no deadline passes. */
  readonly isHeld: boolean;
  /** The deadline counts from here, if its rollout progressed last before. Epoch milliseconds. */
  readonly lastHoldEndedMs: number;
}

export interface DeploymentSets {
  readonly newSet: KubeReplicaSet | undefined;
  readonly oldSets: readonly KubeReplicaSet[];
}

export const hasProgressDeadline = ({ spec }: KubeDeployment): boolean =>
  spec?.progressDeadlineSeconds !== undefined && spec.progressDeadlineSeconds !== NO_DEADLINE_SECONDS;

/** The counts and the conditions Available and ReplicaFailure; Progressing is kept as stored. */
export function deploymentCounts(
  deployment: KubeDeployment,
  { newSet, oldSets }: DeploymentSets,
  nowMs: number,
): WorkloadStatus {
  const { metadata, spec = {}, status = {} } = deployment;
  const sets = newSet === undefined ? oldSets : [newSet, ...oldSets];
  const sum = (count: (set: KubeReplicaSet) => number | undefined): number =>
    sets.reduce((total, set) => total + (count(set) ?? 0), 0);
  const available = sum((set) => set.status?.availableReplicas);
  const replicas = spec.replicas ?? 1;
  const enough = available >= replicas - unavailableMax(fencepostsOf(spec), replicas);
  const availability = condition('Available', enough ? 'True' : 'False', {
    reason: enough ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
    message: enough ? 'Deployment has minimum availability.' : 'Deployment does not have minimum availability.',
    nowMs,
  });
  let conditions = withCondition(status.conditions ?? [], availability);
  const failure = [...(newSet === undefined ? [] : [newSet]), ...oldSets]
    .flatMap((set) => set.status?.conditions ?? [])
    .find(({ type }) => type === 'ReplicaFailure');
  conditions =
    failure === undefined
      ? conditions.filter(({ type }) => type !== 'ReplicaFailure')
      : withCondition(
          conditions,
          condition('ReplicaFailure', failure.status, {
            reason: failure.reason ?? '',
            message: failure.message ?? '',
            nowMs,
          }),
        );
  return {
    ...whole({
      replicas: sum((set) => set.status?.replicas),
      updatedReplicas: newSet?.status?.replicas ?? 0,
      readyReplicas: sum((set) => set.status?.readyReplicas),
      availableReplicas: available,
      unavailableReplicas: Math.max(0, sum((set) => set.spec?.replicas) - available),
    }),
    ...defined({ observedGeneration: metadata.generation, collisionCount: status.collisionCount }),
    conditions,
  };
}

/** Zero is left out, as Go's encoding of these fields does. */
const whole = (counts: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));

/** Reason of a condition and an event. */
export const CREATION_FAILED = 'ReplicaSetCreateError';

/** The status when the new ReplicaSet cannot be created; undefined if it says so, or without a progress deadline. */
export function creationFailedStatus(
  deployment: KubeDeployment,
  message: string,
  nowMs: number,
): WorkloadStatus | undefined {
  if (!hasProgressDeadline(deployment)) return undefined;
  const { status = {} } = deployment;
  const before = status.conditions ?? [];
  const next = condition('Progressing', 'False', { reason: CREATION_FAILED, message, nowMs });
  const isStored = before.some(({ type, reason }) => type === 'Progressing' && reason === CREATION_FAILED);
  return isStored ? undefined : { ...status, conditions: withCondition(before, next) };
}

export const isComplete = ({ metadata, spec }: KubeDeployment, status: WorkloadStatus): boolean => {
  const replicas = spec?.replicas ?? 1;
  return (
    (status.updatedReplicas ?? 0) === replicas &&
    (status.replicas ?? 0) === replicas &&
    (status.availableReplicas ?? 0) === replicas &&
    (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)
  );
};

function isProgressing(before: WorkloadStatus, next: WorkloadStatus): boolean {
  const old = (status: WorkloadStatus): number => (status.replicas ?? 0) - (status.updatedReplicas ?? 0);
  const grew = (field: 'updatedReplicas' | 'readyReplicas' | 'availableReplicas'): boolean =>
    (next[field] ?? 0) > (before[field] ?? 0);
  return grew('updatedReplicas') || old(next) < old(before) || grew('readyReplicas') || grew('availableReplicas');
}

/** The status of a rollout: the counts, and how far it is. */
export function rolloutStatus(
  deployment: KubeDeployment,
  sets: DeploymentSets,
  { nowMs, isHeld, lastHoldEndedMs }: RolloutTimes,
): { readonly status: WorkloadStatus; readonly lookAgainAtMs?: number } {
  const counts = deploymentCounts(deployment, sets, nowMs);
  const conditions = counts.conditions ?? [];
  if (!hasProgressDeadline(deployment)) {
    return { status: { ...counts, conditions: conditions.filter(({ type }) => type !== 'Progressing') } };
  }
  const stored = conditions.find(({ type }) => type === 'Progressing');
  const settled =
    (counts.replicas ?? 0) === (counts.updatedReplicas ?? 0) && stored?.reason === 'NewReplicaSetAvailable';
  const next = settled
    ? stored
    : progressCondition(deployment, { sets, counts, stored, nowMs, isHeld, lastHoldEndedMs });
  const status = next === undefined ? counts : { ...counts, conditions: replaced(conditions, next, stored) };
  return { status, ...defined({ lookAgainAtMs: deadlineAtMs(deployment, status, { nowMs, lastHoldEndedMs }) }) };
}

function progressCondition(
  deployment: KubeDeployment,
  of: {
    readonly sets: DeploymentSets;
    readonly counts: WorkloadStatus;
    readonly stored: WorkloadCondition | undefined;
  } & RolloutTimes,
): WorkloadCondition | undefined {
  const { sets, counts, stored, nowMs, isHeld } = of;
  const subject =
    sets.newSet === undefined
      ? `Deployment "${deployment.metadata.name}"`
      : `ReplicaSet "${sets.newSet.metadata.name}"`;
  if (isComplete(deployment, counts)) {
    const message = `${subject} has successfully progressed.`;
    return condition('Progressing', 'True', { reason: 'NewReplicaSetAvailable', message, nowMs });
  }
  if (isProgressing(deployment.status ?? {}, counts)) {
    const message = `${subject} is progressing.`;
    return condition('Progressing', 'True', { reason: 'ReplicaSetUpdated', message, nowMs });
  }
  // A rollout that is held makes no progress of its own.
  if (stored === undefined || isHeld || !isTimedOut(deployment, stored, of)) return stored;
  const message = `${subject} has timed out progressing.`;
  return condition('Progressing', 'False', { reason: 'ProgressDeadlineExceeded', message, nowMs });
}

function isTimedOut(
  { spec }: KubeDeployment,
  stored: WorkloadCondition,
  { nowMs, lastHoldEndedMs }: RolloutTimes,
): boolean {
  if (stored.reason === 'NewReplicaSetAvailable') return false;
  if (stored.reason === 'ProgressDeadlineExceeded') return true;
  const updatedAtMs = parseTimeMs(stored.lastUpdateTime);
  if (updatedAtMs === undefined) return false;
  return Math.max(updatedAtMs, lastHoldEndedMs) + (spec?.progressDeadlineSeconds ?? 0) * 1_000 < nowMs;
}

/** When the deadline passes, if it can. Epoch milliseconds. */
function deadlineAtMs(
  deployment: KubeDeployment,
  status: WorkloadStatus,
  { nowMs, lastHoldEndedMs }: Omit<RolloutTimes, 'isHeld'>,
): number | undefined {
  if (isComplete(deployment, status)) return undefined;
  const progressing = (status.conditions ?? []).find(({ type }) => type === 'Progressing');
  const updatedAtMs = parseTimeMs(progressing?.lastUpdateTime);
  if (updatedAtMs === undefined || progressing?.reason === 'ProgressDeadlineExceeded') return undefined;
  const countedFromMs = Math.max(updatedAtMs, lastHoldEndedMs);
  const deadlineMs = countedFromMs + (deployment.spec?.progressDeadlineSeconds ?? 0) * 1_000 + 1_000;
  return Math.max(deadlineMs, nowMs + 1_000);
}

/** While a rollout is paused no progress is evaluated. Undefined: the condition stays. */
export function pauseCondition(deployment: KubeDeployment, nowMs: number): WorkloadCondition | undefined {
  if (!hasProgressDeadline(deployment)) return undefined;
  const stored = (deployment.status?.conditions ?? []).find(({ type }) => type === 'Progressing');
  if (stored?.reason === 'ProgressDeadlineExceeded') return undefined;
  const isPaused = stored?.reason === 'DeploymentPaused';
  if (deployment.spec?.paused === true && !isPaused) {
    return condition('Progressing', 'Unknown', { reason: 'DeploymentPaused', message: 'Deployment is paused', nowMs });
  }
  if (deployment.spec?.paused !== true && isPaused) {
    return condition('Progressing', 'Unknown', {
      reason: 'DeploymentResumed',
      message: 'Deployment is resumed',
      nowMs,
    });
  }
  return undefined;
}

export const condition = (
  type: string,
  status: WorkloadCondition['status'],
  { reason, message, nowMs }: { readonly reason: string; readonly message: string; readonly nowMs: number },
): WorkloadCondition => ({
  type,
  status,
  lastUpdateTime: formatTime(nowMs),
  lastTransitionTime: formatTime(nowMs),
  reason,
  message,
});

/** Untouched, times too, if type, status and reason are as before. The transition time is kept with the status. */
export function withCondition(conditions: readonly WorkloadCondition[], next: WorkloadCondition): WorkloadCondition[] {
  const stored = conditions.find(({ type }) => type === next.type);
  if (stored?.status === next.status && stored.reason === next.reason) return [...conditions];
  return replaced(conditions, next, stored);
}

function replaced(
  conditions: readonly WorkloadCondition[],
  next: WorkloadCondition,
  stored: WorkloadCondition | undefined,
): WorkloadCondition[] {
  const kept = stored?.status === next.status ? defined({ lastTransitionTime: stored.lastTransitionTime }) : {};
  return [...conditions.filter(({ type }) => type !== next.type), { ...next, ...kept }];
}
