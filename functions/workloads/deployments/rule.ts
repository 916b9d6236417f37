/**
 * One sync of a Deployment: which ReplicaSets to create, resize and delete, and its status. Pure.
 * Source: pkg/controller/deployment/{deployment_controller,sync,rolling,recreate}.go.
 *
 * While a rollout is held (hold.rule.ts), availability may only look low because we see too little. Then
 * no old ReplicaSet is reduced by a rollout and no history is deleted. A change of spec.replicas by a person is
 * followed.
 */
import { defined } from '../../../shared/defined.ts';
import type { KubeDeployment, KubeReplicaSet, WorkloadStatus } from '../workload-types.ts';
import {
  createdNewSet,
  DESIRED_REPLICAS,
  fencepostsOf,
  isScalingEvent,
  MAX_REPLICAS,
  newSetSize,
  REVISION,
  type Resize,
  reduceOldSets,
  revisionsOf,
  type SizedSet,
  scaleSets,
  sizeAnnotations,
  sizedSet,
  updatedNewSet,
} from './replica-sets.rule.ts';
import {
  condition,
  type DeploymentSets,
  deploymentCounts,
  hasProgressDeadline,
  isComplete,
  pauseCondition,
  type RolloutTimes,
  rolloutStatus,
  withCondition,
} from './status.rule.ts';

export interface DeploymentSync extends RolloutTimes {
  readonly deployment: KubeDeployment;
  /** ReplicaSets that it controls. */
  readonly sets: readonly KubeReplicaSet[];
  /** Pods of old ReplicaSets that are neither Succeeded nor Failed, terminating ones too. 0 unless Recreate. */
  readonly oldPods: number;
}

export interface SetUpdate {
  readonly previous: KubeReplicaSet;
  readonly next: KubeReplicaSet;
  readonly resize?: Resize;
}

export interface DeploymentDecision {
  readonly create?: KubeReplicaSet;
  readonly update: readonly SetUpdate[];
  readonly remove: readonly KubeReplicaSet[];
  /** Absent: the stored status is equal. */
  readonly status?: WorkloadStatus;
  /** The revision annotation to write; absent: it is stored. */
  readonly revision?: string;
  readonly warning?: { readonly reason: string; readonly message: string };
  /** Epoch milliseconds; absent: no time is waited for. */
  readonly lookAgainAtMs?: number;
  /** Reductions that are held. */
  readonly held: readonly Resize[];
  /** Old ReplicaSets beyond the limit stay until rollouts are no longer held. */
  readonly holdsHistory?: true;
}

const NO_LIMIT = 2 ** 31 - 1;

/** A decision with the whole status, before it is compared with the stored one. */
type Draft = Omit<DeploymentDecision, 'status'> & { readonly status: WorkloadStatus };

const NOTHING = { update: [], remove: [], held: [] };

export function decideDeployment(sync: DeploymentSync): DeploymentDecision {
  const { status, ...draft } = draftOf(sync);
  return { ...draft, ...(isSameStatus(sync.deployment.status ?? {}, status) ? {} : { status }) };
}

function draftOf(sync: DeploymentSync): Draft {
  const { deployment, sets, nowMs } = sync;
  const { spec = {}, status, metadata } = deployment;
  if (selectsAll(deployment)) {
    const message = 'This deployment is selecting all pods. A non-empty selector is required.';
    const observed = { ...status, ...defined({ observedGeneration: metadata.generation }) };
    return { ...NOTHING, status: observed, warning: { reason: 'SelectingAll', message } };
  }
  const revisions = revisionsOf(deployment, sets);
  if (metadata.deletionTimestamp !== undefined) {
    return { ...NOTHING, status: deploymentCounts(deployment, revisions, nowMs) };
  }
  const current = { ...sync, deployment: withPauseCondition(deployment, nowMs) };
  if (spec.paused === true || isScalingEvent(sets.map(sizedSet), spec.replicas ?? 1)) {
    return decideScale(current, revisions);
  }
  return spec.strategy?.type === 'Recreate'
    ? decideRecreate(current, revisions)
    : decideRollingUpdate(current, revisions);
}

function selectsAll({ spec }: KubeDeployment): boolean {
  const { matchLabels = {}, matchExpressions = [] } = spec?.selector ?? {};
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}

function withPauseCondition(deployment: KubeDeployment, nowMs: number): KubeDeployment {
  const next = pauseCondition(deployment, nowMs);
  if (next === undefined) return deployment;
  const { status = {} } = deployment;
  return { ...deployment, status: { ...status, conditions: withCondition(status.conditions ?? [], next) } };
}

/** After a change of spec.replicas, and while paused: sizes alone. */
function decideScale({ deployment, oldPods, isHeld, nowMs }: DeploymentSync, revisions: DeploymentSets): Draft {
  const { spec = {}, status } = deployment;
  const resizes = scaleSets({
    newSet: revisions.newSet === undefined ? undefined : sizedSet(revisions.newSet),
    oldSets: revisions.oldSets.map(sizedSet),
    replicas: spec.replicas ?? 1,
    fenceposts: fencepostsOf(spec),
    isRollingUpdate: spec.strategy?.type !== 'Recreate',
    statusReplicas: status?.replicas ?? 0,
  });
  // Pods of a ReplicaSet that is deleted would no longer be waited for.
  const cleansUp = spec.paused === true && oldPods === 0;
  return {
    update: resized(deployment, allSets(revisions), resizes, 'annotate'),
    ...historyCleanUp(deployment, cleansUp ? revisions.oldSets : [], isHeld),
    held: [],
    status: deploymentCounts(deployment, revisions, nowMs),
  };
}

const allSets = ({ newSet, oldSets }: DeploymentSets): readonly KubeReplicaSet[] =>
  newSet === undefined ? oldSets : [newSet, ...oldSets];

/**
 * ReplicaSets with their new sizes. A resized one records the size that it is a part of; with `annotate` every active
 * one does, because the change of spec.replicas is then done for it too.
 */
function resized(
  deployment: KubeDeployment,
  sets: readonly KubeReplicaSet[],
  resizes: readonly Resize[],
  others?: 'annotate',
): readonly SetUpdate[] {
  const annotations = sizeAnnotations(deployment);
  return sets.flatMap((previous) => {
    const steps = resizes.filter(({ name }) => name === previous.metadata.name);
    const last = steps.at(-1);
    const isActive = (previous.spec?.replicas ?? 0) > 0;
    if (last === undefined && (others === undefined || !isActive || hasAnnotations(previous, annotations))) return [];
    const resize = last === undefined ? undefined : { ...last, from: steps[0]?.from ?? last.from };
    const next: KubeReplicaSet = {
      ...previous,
      metadata: { ...previous.metadata, annotations: { ...previous.metadata.annotations, ...annotations } },
      spec: { ...previous.spec, replicas: resize?.to ?? previous.spec?.replicas ?? 0 },
    };
    return [{ previous, next, ...defined({ resize }) }];
  });
}

const hasAnnotations = ({ metadata }: KubeReplicaSet, annotations: Readonly<Record<string, string>>): boolean =>
  [DESIRED_REPLICAS, MAX_REPLICAS].every((name) => metadata.annotations?.[name] === annotations[name]);

/** The new ReplicaSet with its revision; made if there is none. */
function currentSet(deployment: KubeDeployment, { newSet, oldSets }: DeploymentSets) {
  if (newSet === undefined) return { create: createdNewSet(deployment, oldSets) };
  const next = updatedNewSet(deployment, newSet, oldSets);
  return { newSet, next, isUpdated: next !== newSet };
}

/** Conditions that say where the new ReplicaSet comes from; only with a progress deadline. */
function withSetCondition(
  deployment: KubeDeployment,
  { name, isCreated }: { readonly name: string; readonly isCreated: boolean },
  nowMs: number,
): KubeDeployment {
  const { status = {} } = deployment;
  const conditions = status.conditions ?? [];
  if (!hasProgressDeadline(deployment)) return deployment;
  if (!isCreated && conditions.some(({ type }) => type === 'Progressing')) return deployment;
  const next = isCreated
    ? { reason: 'NewReplicaSetCreated', message: `Created new replica set "${name}"`, nowMs }
    : { reason: 'FoundNewReplicaSet', message: `Found new replica set "${name}"`, nowMs };
  return {
    ...deployment,
    status: { ...status, conditions: withCondition(conditions, condition('Progressing', 'True', next)) },
  };
}

function decideRollingUpdate(sync: DeploymentSync, revisions: DeploymentSets): Draft {
  const { deployment, isHeld, nowMs } = sync;
  const { spec = {} } = deployment;
  const replicas = spec.replicas ?? 1;
  const fenceposts = fencepostsOf(spec);
  const current = currentSet(deployment, revisions);
  const set = current.create ?? current.next;
  const conditioned =
    current.create === undefined && current.isUpdated
      ? deployment
      : withSetCondition(deployment, { name: set.metadata.name ?? '', isCreated: current.create !== undefined }, nowMs);
  const rest = { ...rolloutStatus(conditioned, revisions, sync), ...revisionOf(deployment, set) };
  if (current.create === undefined) {
    const sized = allSets(revisions).map(sizedSet);
    const size = newSetSize(set.spec?.replicas ?? 0, sized, replicas, fenceposts);
    if (size !== set.spec?.replicas) {
      const resize: Resize = { name: set.metadata.name ?? '', from: set.spec?.replicas ?? 0, to: size, step: 'new' };
      const [update] = resized(deployment, [set], [resize]);
      return { update: [{ ...update!, previous: current.newSet }], remove: [], held: [], ...rest };
    }
  }
  const own = current.create === undefined && current.isUpdated ? [{ previous: current.newSet, next: set }] : [];
  const newSized: SizedSet = { ...sizedSet(set), available: revisions.newSet?.status?.availableReplicas ?? 0 };
  const reductions = reduceOldSets(newSized, revisions.oldSets.map(sizedSet), replicas, fenceposts);
  return {
    ...defined({ create: current.create }),
    update: [...own, ...(isHeld ? [] : resized(deployment, revisions.oldSets, reductions))],
    held: isHeld ? reductions : [],
    ...historyCleanUp(deployment, isComplete(deployment, rest.status) ? revisions.oldSets : [], isHeld),
    ...rest,
  };
}

/** All old pods terminate before the first new one is created. */
function decideRecreate(sync: DeploymentSync, revisions: DeploymentSets): Draft {
  const { deployment, oldPods, isHeld, nowMs } = sync;
  const replicas = deployment.spec?.replicas ?? 1;
  const { newSet, oldSets } = revisions;
  const active = oldSets.filter((set) => (set.spec?.replicas ?? 0) > 0);
  const status = rolloutStatus(deployment, revisions, sync);
  if (active.length > 0) {
    const resizes = active.map(
      (set): Resize => ({
        name: set.metadata.name ?? '',
        from: set.spec?.replicas ?? 0,
        to: 0,
        step: 'recreate',
      }),
    );
    return {
      update: isHeld ? [] : resized(deployment, active, resizes),
      remove: [],
      held: isHeld ? resizes : [],
      ...status,
    };
  }
  if (oldPods > 0 || oldSets.some((set) => (set.status?.replicas ?? 0) > 0)) return { ...NOTHING, ...status };
  const current = currentSet(deployment, revisions);
  const set = current.create ?? current.next;
  const named = withSetCondition(
    deployment,
    { name: set.metadata.name ?? '', isCreated: current.create !== undefined },
    nowMs,
  );
  const rest = { ...rolloutStatus(named, revisions, sync), ...revisionOf(deployment, set) };
  if (current.create !== undefined) return { ...NOTHING, create: current.create, ...rest };
  const size = set.spec?.replicas ?? 0;
  const resizes: Resize[] =
    size === replicas ? [] : [{ name: set.metadata.name ?? '', from: size, to: replicas, step: 'new' }];
  const update =
    resizes.length > 0
      ? resized(deployment, [set], resizes).map((each) => ({ ...each, previous: newSet! }))
      : current.isUpdated
        ? [{ previous: newSet!, next: set }]
        : [];
  const cleanUp = historyCleanUp(deployment, isComplete(deployment, rest.status) ? oldSets : [], isHeld);
  return { update, held: [], ...cleanUp, ...rest };
}

function revisionOf(deployment: KubeDeployment, set: KubeReplicaSet) {
  const revision = set.metadata.annotations?.[REVISION];
  return revision === undefined || deployment.metadata.annotations?.[REVISION] === revision ? {} : { revision };
}

/**
 * The history is cleaned in the commit that stores the complete status. Upstream waits for the next sync, but here the
 * write of a status starts none.
 */
function historyCleanUp(
  deployment: KubeDeployment,
  oldSets: readonly KubeReplicaSet[],
  isHeld: boolean,
): Pick<DeploymentDecision, 'remove' | 'holdsHistory'> {
  const remove = expiredSets(deployment, oldSets);
  return isHeld && remove.length > 0 ? { remove: [], holdsHistory: true } : { remove };
}

/**
 * Old ReplicaSets beyond revisionHistoryLimit, oldest first. One that still has pods is spared, and no other one is
 * deleted in its place.
 */
function expiredSets({ spec }: KubeDeployment, oldSets: readonly KubeReplicaSet[]): readonly KubeReplicaSet[] {
  const limit = spec?.revisionHistoryLimit ?? 10;
  if (limit === NO_LIMIT) return [];
  const candidates = oldSets.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return candidates
    .slice(0, Math.max(0, candidates.length - limit))
    .filter(
      (set) =>
        (set.spec?.replicas ?? 0) === 0 &&
        (set.status?.replicas ?? 0) === 0 &&
        (set.metadata.generation ?? 0) <= (set.status?.observedGeneration ?? 0),
    );
}

const COUNTS = [
  'replicas',
  'updatedReplicas',
  'readyReplicas',
  'availableReplicas',
  'unavailableReplicas',
  'observedGeneration',
  'collisionCount',
] as const;

function isSameStatus(left: WorkloadStatus, right: WorkloadStatus): boolean {
  const [before, after] = [left.conditions ?? [], right.conditions ?? []];
  return (
    COUNTS.every((field) => (left[field] ?? 0) === (right[field] ?? 0)) &&
    before.length === after.length &&
    after.every((next) => {
      const stored = before.find(({ type }) => type === next.type);
      return (
        stored?.status === next.status && stored.reason === next.reason && stored.lastUpdateTime === next.lastUpdateTime
      );
    })
  );
}
