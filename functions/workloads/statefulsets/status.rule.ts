/** The status of a StatefulSet. Pure. Source: stateful_set_control.go (updateStatus, completeRollingUpdate). */
import { defined } from '../../../shared/defined.ts';
import { failureConditions, isSameConditions, type SyncFailure } from '../replica-failure.rule.ts';
import type { KubeStatefulSet } from '../workload-types.ts';
import type { OrdinalPod } from './rule.ts';

type Status = NonNullable<KubeStatefulSet['status']>;

/** By the pods before this sync's acts, those being deleted included. Undefined: the stored one is equal. */
export function statefulSetStatus(
  set: KubeStatefulSet,
  pods: readonly OrdinalPod[],
  revisions: { readonly current: string; readonly update: string },
  failure: { readonly failure: SyncFailure | undefined; readonly nowMs: number },
): Status | undefined {
  const { metadata, spec, status = {} } = set;
  const count = (counts: (pod: OrdinalPod) => boolean): number => pods.filter(counts).length;
  const readyReplicas = count(({ state }) => state === 'ready' || state === 'available');
  const ofRevision = (revision: string): number => count((pod) => !pod.isDeleting && pod.revision === revision);
  const updatedReplicas = ofRevision(revisions.update);
  const replicas = pods.length;
  // Only wanted pods count: one that is missing now is created by this sync.
  const wanted = spec?.replicas ?? 1;
  const isComplete =
    spec?.updateStrategy?.type !== 'OnDelete' &&
    [replicas, updatedReplicas, readyReplicas].every((each) => each === wanted);
  const next: Status = {
    replicas,
    availableReplicas: count(({ state }) => state === 'available'),
    ...nonZero('readyReplicas', readyReplicas),
    ...nonZero('currentReplicas', isComplete ? updatedReplicas : ofRevision(revisions.current)),
    ...nonZero('updatedReplicas', updatedReplicas),
    ...defined({
      currentRevision: isComplete ? revisions.update : revisions.current,
      updateRevision: revisions.update,
      observedGeneration: metadata.generation,
      collisionCount: status.collisionCount ?? 0,
      conditions: failureConditions(status.conditions, failure.failure, failure.nowMs),
    }),
  };
  return isSame(status, next) ? undefined : next;
}

const COUNTS = [
  'replicas',
  'availableReplicas',
  'readyReplicas',
  'currentReplicas',
  'updatedReplicas',
  'observedGeneration',
] as const;

const isSame = (left: Status, right: Status): boolean =>
  COUNTS.every((field) => (left[field] ?? 0) === (right[field] ?? 0)) &&
  left.currentRevision === right.currentRevision &&
  left.updateRevision === right.updateRevision &&
  isSameConditions(left.conditions, right.conditions);

/** Zero is left out, as Go's encoding of these fields does. */
const nonZero = (field: (typeof COUNTS)[number], count: number) => (count === 0 ? {} : { [field]: count });

/** For the sweep: every wanted pod exists, and no rolling update is under way. */
export function isStatefulSetSettled({ metadata, spec, status = {} }: KubeStatefulSet): boolean {
  const replicas = spec?.replicas ?? 1;
  const partition = spec?.updateStrategy?.rollingUpdate?.partition ?? 0;
  const isRolling =
    spec?.updateStrategy?.type !== 'OnDelete' &&
    status.currentRevision !== status.updateRevision &&
    (status.updatedReplicas ?? 0) < replicas - partition;
  return (
    status.observedGeneration === metadata.generation &&
    (status.replicas ?? 0) === replicas &&
    metadata.deletionTimestamp === undefined &&
    !isRolling
  );
}
