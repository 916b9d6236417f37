/**
 * Decision records of the controller of ReplicaSets and ReplicationControllers: which pods it created and deleted, and
 * the numbers.
 */
import {
  aboutWorkload,
  type DraftOf,
  type RecordedWorkload,
  type ReplayRules,
} from '../../../shared/decisions/decision-record.ts';
import type { OwnedPod } from '../owned-pods.rule.ts';
import { BURST_PODS, byLogShard, firstToDelete, missingPods, type ReplicaSetDecision, type SetKind } from './rule.ts';

/** What the order of deletion reads of a pod. */
type RankedPod = Pick<
  OwnedPod,
  'name' | 'uid' | 'nodeName' | 'phase' | 'ready' | 'readyChangedAtMs' | 'createdAtMs' | 'deletionCost' | 'restartsMax'
>;

interface ReplicaSetInputs {
  readonly missingPods: {
    readonly replicas: number;
    readonly active: number;
    /** Absent: none. */
    readonly held?: number;
  };
  readonly surplusPods: {
    readonly replicas: number;
    readonly pods: readonly RankedPod[];
    /** Nodes of the related active pods. */
    readonly relatedOn: readonly string[];
    /** Pods of this decision that an earlier transaction deleted. */
    readonly before: number;
    readonly count: number;
    /** The pods are ordered by these shards of the change log. */
    readonly logShards: number;
  };
}

export type ReplicaSetDraft = DraftOf<ReplicaSetInputs>;

/** A ReplicaSet, as far as a record names it. */
interface RecordedSet extends RecordedWorkload {
  readonly spec?: { readonly replicas?: number };
}

/** One transaction of creations. `active`: pods before it. `held`: terminating pods that must not run twice. */
export function podsCreatedDraft(
  kind: SetKind['kind'],
  replicaSet: RecordedSet,
  { active, held, names }: { readonly active: number; readonly held: number; readonly names: readonly string[] },
  nowMs: number,
): ReplicaSetDraft {
  const replicas = replicaSet.spec?.replicas ?? 1;
  const waiting = held === 0 ? '' : `, ${held} terminate and must not run twice`;
  return {
    act: 'PodsCreated',
    about: aboutWorkload(kind, replicaSet),
    atMs: nowMs,
    reason: `${replicas} pods are wanted and ${active} are active${waiting}: created ${names.join(', ')}`,
    rule: 'missingPods',
    inputs: { replicas, active, ...(held === 0 ? {} : { held }) },
    outcome: { missing: missingPods({ replicas, active, held }) },
  };
}

export function podsDeletedDraft(
  kind: SetKind['kind'],
  replicaSet: RecordedSet,
  of: {
    readonly decision: ReplicaSetDecision;
    readonly pods: readonly OwnedPod[];
    readonly relatedPods: readonly OwnedPod[];
    readonly names: readonly string[];
    readonly before: number;
    readonly logShards: number;
  },
  nowMs: number,
): ReplicaSetDraft {
  const replicas = replicaSet.spec?.replicas ?? 1;
  const active = of.pods.filter(({ isDeleting, phase }) => !isDeleting && phase !== 'Failed' && phase !== 'Succeeded');
  return {
    act: 'PodsDeleted',
    about: aboutWorkload(kind, replicaSet),
    atMs: nowMs,
    reason: `${replicas} pods are wanted and ${active.length - of.before} are active: deleted ${of.names.join(', ')}`,
    rule: 'surplusPods',
    inputs: {
      replicas,
      pods: active.map(ranked),
      relatedOn: of.relatedPods.map(({ nodeName }) => nodeName),
      before: of.before,
      count: of.names.length,
      logShards: of.logShards,
    },
    outcome: { names: [...of.names] },
  };
}

const ranked = ({
  name,
  uid,
  nodeName,
  phase,
  ready,
  readyChangedAtMs,
  createdAtMs,
  deletionCost,
  restartsMax,
}: OwnedPod): RankedPod => ({
  name,
  uid,
  nodeName,
  phase,
  ready,
  readyChangedAtMs,
  createdAtMs,
  deletionCost,
  restartsMax,
});

const asPod = (pod: RankedPod): OwnedPod => ({
  ...pod,
  readyChangedAtMs: pod.readyChangedAtMs,
  createdAtMs: pod.createdAtMs,
  namespace: '',
  resourceVersion: '',
  labels: {},
  isDeleting: false,
  isSingle: false,
});

export const replicaSetReplay: ReplayRules<ReplicaSetInputs> = {
  missingPods: ({ replicas, active, held = 0 }) => ({ missing: missingPods({ replicas, active, held }) }),
  surplusPods({ replicas, pods, relatedOn, before, count, logShards }, { about, atMs }) {
    const surplus = Math.min(pods.length - replicas, BURST_PODS);
    const relatedPods = relatedOn.map((nodeName) => ({ nodeName }) as OwnedPod);
    const chosen = firstToDelete(pods.map(asPod), surplus, { relatedPods, nowMs: atMs });
    const { namespace = '' } = about;
    const order = byLogShard(chosen, { namespace, logShards });
    return { names: order.slice(before, before + count).map(({ name }) => name) };
  },
};
