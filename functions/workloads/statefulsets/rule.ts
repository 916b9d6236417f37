/**
 * One sync of a StatefulSet: which pods to create and delete. Pure.
 *
 * At most one pod has an ordinal: a pod that is being deleted keeps its ordinal until its object is removed, however
 * long its node is silent. Source: pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet).
 */
import { scaledValue } from '../int-or-percent.rule.ts';

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

/** Pods that one sync creates: their records start the next sync. */
const BURST_PODS = 500;

/** Walks over the pods that exist, not over spec.replicas: that may be any number up to 2^31 - 1. */
export function decideStatefulSet(rules: StatefulRules, pods: readonly OrdinalPod[]): StatefulDecision {
  const byOrdinal = new Map(pods.map((pod) => [pod.ordinal, pod]));
  const kept = keepWanted(rules, byOrdinal);
  if (kept.isBlocked) return kept.decision;
  const condemned = pods
    .filter(({ ordinal }) => !isWanted(rules, ordinal))
    .toSorted((left, right) => right.ordinal - left.ordinal);
  const reduced = removeCondemned(rules, condemned);
  if (reduced.isBlocked) return reduced.decision;
  const { awaits } = kept.decision;
  return {
    create: kept.decision.create,
    remove: [...kept.decision.remove, ...reduced.decision.remove],
    replace: outdated(rules, byOrdinal),
    ...(awaits === undefined ? {} : { awaits }),
  };
}

interface Step {
  readonly decision: StatefulDecision;
  /** Nothing further happens in this sync. */
  readonly isBlocked: boolean;
}

/**
 * Ordinals upward. In order, the first that is not available ends the sync; in parallel, BURST_PODS missing ones do.
 */
function keepWanted(rules: StatefulRules, byOrdinal: ReadonlyMap<number, OrdinalPod>): Step {
  const create: { ordinal: number; revision: string }[] = [];
  const remove: number[] = [];
  const waits: number[] = [];
  const blocked = (decision: Partial<StatefulDecision>): Step => ({
    decision: { ...NOTHING, ...decision },
    isBlocked: true,
  });
  for (let ordinal = rules.start; isWanted(rules, ordinal) && create.length < BURST_PODS; ordinal += 1) {
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
function removeCondemned({ isParallel }: StatefulRules, condemned: readonly OrdinalPod[]): Step {
  if (isParallel) {
    const remove = condemned.filter(({ isDeleting }) => !isDeleting).map(({ ordinal }) => ordinal);
    return { decision: { ...NOTHING, remove }, isBlocked: false };
  }
  const [highest] = condemned;
  if (highest === undefined) return { decision: NOTHING, isBlocked: false };
  if (highest.isDeleting) return { decision: { ...NOTHING, awaits: highest.ordinal }, isBlocked: true };
  // In order, every wanted pod is available here.
  const firstUnhealthy = condemned.findLast((pod) => !isHealthy(pod));
  const mayGo = highest.state === 'available' || highest === firstUnhealthy;
  return { decision: { ...NOTHING, remove: mayGo ? [highest.ordinal] : [] }, isBlocked: true };
}

/** From the highest ordinal down to the partition. */
function outdated(rules: StatefulRules, byOrdinal: ReadonlyMap<number, OrdinalPod>): readonly number[] {
  const { rollingUpdate, updateRevision, start, replicas } = rules;
  if (rollingUpdate === undefined) return [];
  const { partition, maxUnavailable } = rollingUpdate;
  const isOld = ({ revision, isDeleting }: OrdinalPod): boolean => revision !== updateRevision && !isDeleting;
  if (maxUnavailable === undefined) {
    for (let ordinal = start + replicas - 1; ordinal >= start + partition; ordinal -= 1) {
      const pod = byOrdinal.get(ordinal);
      if (pod !== undefined && isOld(pod)) return [ordinal];
      if (pod === undefined || !isHealthy(pod)) return [];
    }
    return [];
  }
  const limit = Math.max(1, scaledValue(maxUnavailable, replicas, 'down') ?? 1);
  const present = [...byOrdinal.values()].filter(({ ordinal }) => isWanted(rules, ordinal));
  const available = present.filter(({ state, isDeleting }) => state === 'available' && !isDeleting).length;
  const old = present.filter((pod) => pod.ordinal >= start + partition && isOld(pod)).map(({ ordinal }) => ordinal);
  return old.toSorted((left, right) => right - left).slice(0, Math.max(0, limit - (replicas - available)));
}
