/**
 * Deletes a pod by taint eviction, as DELETE without options does (deletion.ts): its condition states the cause,
 * and its own grace period applies. Condition, deletion mark and event are one commit. A pod without a grace period
 * gets the condition in an earlier commit. The commit is refused when the Node changed since the decision, and skipped
 * when the pod's tolerations changed: a taint that was removed or is tolerated evicts no pod.
 *
 * Without a condition it removes a terminating pod, as DELETE with a grace period of 0 does: finalizers delay it.
 */
import { eventWrite, type PendingEvent } from '../events/record-event.ts';
import type { KubePod, ObjectRef } from '../kinds/types.ts';
import { markDeleted, podGraceSeconds } from '../kubernetes/deletion.ts';
import { boundedSeconds } from '../kubernetes/time.ts';
import type { PutWrite, TransactWrite } from '../store/item-store.ts';
import type { ObjectWrite } from '../store/object-store.ts';
import type { WorkDependencies } from '../ticks/dependencies.ts';
import { type DisruptionCondition, withDisruption } from './eviction.rule.ts';

const ATTEMPTS_MAX = 6;

export type PodDeletion =
  | { readonly kind: 'deleted' }
  /** The pod no longer exists, was deleted like this already, or was replaced by another one of that name. */
  | { readonly kind: 'absent' }
  /** The Node, its signs of life or the pod's tolerations changed since the decision: decide again. */
  | { readonly kind: 'changed' }
  /** With its condition the pod would exceed the size limit of an item. */
  | { readonly kind: 'tooLarge' }
  /** Concurrent commits refused every attempt. */
  | { readonly kind: 'contended' };

/** The next commit of a deletion. `isLast`: no commit follows. */
function deletionOf(
  pod: KubePod,
  ref: ObjectRef,
  condition: DisruptionCondition | undefined,
  nowMs: number,
): { readonly write: ObjectWrite; readonly isLast: boolean } {
  // A stored grace period may be out of range: deletionTimestamp must still be a valid time.
  const graceSeconds = condition === undefined ? 0 : (boundedSeconds(podGraceSeconds(pod)) ?? 0);
  const conditions = pod.status?.conditions ?? [];
  const disrupted = condition === undefined ? undefined : withDisruption(conditions, condition, nowMs);
  const status = { ...pod.status, conditions: disrupted ?? conditions };
  if (graceSeconds === 0 && (pod.metadata.finalizers ?? []).length === 0) {
    // The pod is removed at once: watchers see the condition only in an earlier commit.
    return disrupted === undefined
      ? { write: { kind: 'delete', ref, previous: pod }, isLast: true }
      : { write: { kind: 'update', ref, object: { ...pod, status }, previous: pod }, isLast: false };
  }
  const object = { ...markDeleted(pod, graceSeconds, nowMs), status };
  return { write: { kind: 'update', ref, object, previous: pod }, isLast: true };
}

/** The pod terminates, and its machine must confirm the end. */
export const waitsForMachine = ({ metadata }: KubePod): boolean =>
  metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds !== 0;

const sameTolerations = (one: KubePod, other: KubePod): boolean =>
  JSON.stringify(one.spec?.tolerations) === JSON.stringify(other.spec?.tolerations);

export async function deletePod(
  { objects, random }: Pick<WorkDependencies, 'objects' | 'random'>,
  first: KubePod,
  of: {
    /** undefined: remove the pod. */
    readonly condition: DisruptionCondition | undefined;
    readonly event: PendingEvent | undefined;
    readonly nowMs: number;
    /** In each commit, with the conditions of the decision: the Node and its taints have not changed. */
    readonly guards: readonly TransactWrite[];
    /** Written with the last commit. */
    readonly record: PutWrite;
  },
): Promise<PodDeletion> {
  const { nowMs, condition } = of;
  const ref: ObjectRef = {
    resource: 'pods',
    namespace: first.metadata.namespace ?? '',
    name: first.metadata.name ?? '',
  };
  let pod: KubePod | undefined = first;
  let { event } = of;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    if (pod === undefined || pod.metadata.uid !== first.metadata.uid) return { kind: 'absent' };
    if (condition === undefined ? !waitsForMachine(pod) : pod.metadata.deletionTimestamp !== undefined) {
      return { kind: 'absent' };
    }
    if (!sameTolerations(pod, first)) return { kind: 'changed' };
    const events = event === undefined ? [] : [eventWrite(event, { nowMs, eventUid: random.uuid() })];
    const { write, isLast } = deletionOf(pod, ref, condition, nowMs);
    const outcome = await objects.commit({
      writes: [write, ...events],
      extra: isLast ? [...of.guards, of.record] : of.guards,
    });
    if (outcome.kind === 'committed') {
      if (isLast) return { kind: 'deleted' };
      pod = outcome.objects[0];
      event = undefined;
      continue;
    }
    if (outcome.kind === 'extraRefused') return { kind: 'changed' };
    if (outcome.kind === 'tooLarge' || outcome.kind === 'overfull') return { kind: 'tooLarge' };
    if (outcome.kind === 'conflict' && outcome.index === 0) pod = outcome.current;
    else if (outcome.kind === 'conflict') event = undefined;
    else pod = await objects.get(ref);
  }
  return { kind: 'contended' };
}
