/**
 * One sync of a StatefulSet: which pods to create and delete. Pure.
 *
 * At most one pod has an ordinal: a pod that is being deleted keeps its ordinal until its object is removed, however long
 * its node is silent. Source: pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet).
 */
import { scaledValue } from '../workload-rules/int-or-percent.rule.ts';

/** Failed or Succeeded; not Running and Ready; Ready; Ready for minReadySeconds. */
export type PodState = 'ended' | 'unready' | 'ready' | 'available';

export interface OrdinalPod {
  readonly ordinal: number;
  readonly state: PodState;
  readonly isDeleting: boolean;
  /** Name of the revision that it was made from. */
  readonly revision: string;
}

export interface StatefulRules {
  readonly replicas: number;
  /** The lowest ordinal. */
  readonly start: number;
  /** Pods wait for no other. */
  readonly isParallel: boolean;
  /** Undefined: pods of an old revision are replaced when a person deletes them. */
  readonly rollingUpdate?: {
    /** Ordinals from start + partition are updated. */
    readonly partition: number;
    /** A number, or a percentage of the replicas. Absent: one after the other, each when the former is healthy. */
    readonly maxUnavailable?: number | string;
  };
  readonly currentRevision: string;
  readonly updateRevision: string;
}

export interface StatefulDecision {
  readonly create: readonly { readonly ordinal: number; readonly revision: string }[];
  /** Ordinals that are not wanted, and Failed and Succeeded pods. */
  readonly remove: readonly number[];
  /** Ordinals with an old revision. The closed gate holds these back. */
  readonly replace: readonly number[];
  /** The pod that is being deleted and blocks the others, or its own ordinal. */
  readonly awaits?: number;
}

const NOTHING: StatefulDecision = { create: [], remove: [], replace: [] };

const isReady = ({ state }: OrdinalPod): boolean => state === 'ready' || state === 'available';
const isHealthy = (pod: OrdinalPod): boolean => isReady(pod) && !pod.isDeleting;

export const isWanted = ({ start, replicas }: StatefulRules, ordinal: number): boolean =>
  ordinal >= start && ordinal < start + replicas;

export function decideStatefulSet(rules: StatefulRules, pods: readonly OrdinalPod[]): StatefulDecision {
  const byOrdinal = new Map(pods.map((pod) => [pod.ordinal, pod]));
  const wanted = Array.from({ length: rules.replicas }, (_, index) => rules.start + index);
  const kept = keepWanted(rules, wanted, byOrdinal);
  if (kept.isBlocked) return kept.decision;
  const condemned = pods
    .filter(({ ordinal }) => !isWanted(rules, ordinal))
    .toSorted((left, right) => right.ordinal - left.ordinal);
  const firstUnhealthy = [...wanted.map((ordinal) => byOrdinal.get(ordinal)), ...condemned.toReversed()].find(
    (pod) => pod === undefined || !isHealthy(pod),
  );
  const reduced = removeCondemned(rules, condemned, firstUnhealthy);
  if (reduced.isBlocked) return reduced.decision;
  const { awaits } = kept.decision;
  return {
    create: kept.decision.create,
    remove: [...kept.decision.remove, ...reduced.decision.remove],
    replace: outdated(rules, wanted, byOrdinal),
    ...(awaits === undefined ? {} : { awaits }),
  };
}

interface Step {
  readonly decision: StatefulDecision;
  /** Nothing further happens in this sync. */
  readonly isBlocked: boolean;
}

/** Ordinals upward. In order, the first that is not available ends the sync. */
function keepWanted(rules: StatefulRules, wanted: readonly number[], byOrdinal: ReadonlyMap<number, OrdinalPod>): Step {
  const create: { ordinal: number; revision: string }[] = [];
  const remove: number[] = [];
  const waits: number[] = [];
  const blocked = (decision: Partial<StatefulDecision>): Step => ({
    decision: { ...NOTHING, ...decision },
    isBlocked: true,
  });
  for (const ordinal of wanted) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) create.push({ ordinal, revision: revisionFor(rules, ordinal) });
    else if (pod.isDeleting) waits.push(ordinal);
    else if (pod.state === 'ended') remove.push(ordinal);
    if (rules.isParallel || (pod?.state === 'available' && !pod.isDeleting)) continue;
    return blocked({ create, remove, ...(pod?.isDeleting ? { awaits: ordinal } : {}) });
  }
  const [awaits] = waits;
  return {
    decision: { create, remove, replace: [], ...(awaits === undefined ? {} : { awaits }) },
    isBlocked: false,
  };
}

/** Below the partition the current revision, else the update revision. */
function revisionFor(
  { rollingUpdate, start, currentRevision, updateRevision }: StatefulRules,
  ordinal: number,
): string {
  return rollingUpdate !== undefined && ordinal < start + rollingUpdate.partition ? currentRevision : updateRevision;
}

/** The highest first. In order, one after the other, and none before the pods below are healthy. */
function removeCondemned(
  { isParallel }: StatefulRules,
  condemned: readonly OrdinalPod[],
  firstUnhealthy: OrdinalPod | undefined,
): Step {
  if (isParallel) {
    const remove = condemned.filter(({ isDeleting }) => !isDeleting).map(({ ordinal }) => ordinal);
    return { decision: { ...NOTHING, remove }, isBlocked: false };
  }
  const [highest] = condemned;
  if (highest === undefined) return { decision: NOTHING, isBlocked: false };
  if (highest.isDeleting) return { decision: { ...NOTHING, awaits: highest.ordinal }, isBlocked: true };
  const mayGo = highest.state === 'available' || highest === firstUnhealthy;
  return { decision: { ...NOTHING, remove: mayGo ? [highest.ordinal] : [] }, isBlocked: true };
}

/** From the highest ordinal down to the partition. */
function outdated(
  rules: StatefulRules,
  wanted: readonly number[],
  byOrdinal: ReadonlyMap<number, OrdinalPod>,
): readonly number[] {
  const { rollingUpdate, updateRevision, start, replicas } = rules;
  if (rollingUpdate === undefined) return [];
  const { partition, maxUnavailable } = rollingUpdate;
  const targets = wanted.filter((ordinal) => ordinal >= start + partition).toReversed();
  const isOld = (ordinal: number): boolean => {
    const pod = byOrdinal.get(ordinal);
    return pod !== undefined && pod.revision !== updateRevision && !pod.isDeleting;
  };
  if (maxUnavailable === undefined) {
    for (const ordinal of targets) {
      if (isOld(ordinal)) return [ordinal];
      const pod = byOrdinal.get(ordinal);
      if (pod === undefined || !isHealthy(pod)) return [];
    }
    return [];
  }
  const limit = Math.max(1, scaledValue(maxUnavailable, replicas, 'down') ?? 1);
  const unavailable = wanted.filter((ordinal) => {
    const pod = byOrdinal.get(ordinal);
    return pod === undefined || pod.state !== 'available' || pod.isDeleting;
  }).length;
  return targets.filter(isOld).slice(0, Math.max(0, limit - unavailable));
}
