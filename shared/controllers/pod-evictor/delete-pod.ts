/**
 * Deleting a pod by taint eviction: its condition says why, its event is told, and it ends with its own grace period, as
 * DELETE without options does (kube/deletion.ts). Condition, mark and event are one commit; of a pod without grace the
 * condition comes before. A Node that changed since the decision refuses it, and so do other tolerations: a taint that is
 * lifted or tolerated by now takes no pod.
 */

import { boundedSeconds } from '../../domain/stored-seconds.ts';
import { markDeleted, podGraceSeconds } from '../../kube/deletion.ts';
import type { KubeObject, ObjectRef } from '../../kube/types.ts';
import type { CheckWrite, PutWrite } from '../../ports/item-store.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { type EventToTell, eventWrite } from '../framework/record-event.ts';
import { type DisruptionCondition, withDisruption } from './rule.ts';

const ATTEMPTS_MAX = 6;

export type PodDeletion =
  | { readonly kind: 'deleted' }
  /** It is gone, terminating, or another one of that name by now. */
  | { readonly kind: 'gone' }
  /** Its Node, or what it tolerates, is not what it was when this was decided: decide again. */
  | { readonly kind: 'changed' }
  /** With its condition it would be larger than an item may be. */
  | { readonly kind: 'tooLarge' }
  /** Other commits were in the way each time. */
  | { readonly kind: 'contended' };

/** The next commit on the way to the end of a pod. `isLast`: there is none after it. */
function deletionOf(
  pod: KubeObject,
  ref: ObjectRef,
  condition: DisruptionCondition,
  nowMs: number,
): { readonly write: ObjectWrite; readonly isLast: boolean } {
  // A stored grace may be absurd: deletionTimestamp must still be a time.
  const graceSeconds = boundedSeconds(podGraceSeconds(pod)) ?? 0;
  const conditions = (pod.status?.['conditions'] as Parameters<typeof withDisruption>[0] | undefined) ?? [];
  const disrupted = withDisruption(conditions, condition, nowMs);
  const status = { ...pod.status, conditions: disrupted ?? conditions };
  if (graceSeconds === 0 && (pod.metadata.finalizers ?? []).length === 0) {
    // It goes at once, so that who watches sees why only by a commit before.
    return disrupted === undefined
      ? { write: { kind: 'delete', ref, previous: pod }, isLast: true }
      : { write: { kind: 'update', ref, object: { ...pod, status }, previous: pod }, isLast: false };
  }
  const object = { ...markDeleted(pod, graceSeconds, nowMs), status };
  return { write: { kind: 'update', ref, object, previous: pod }, isLast: true };
}

const sameTolerations = (one: KubeObject, other: KubeObject): boolean =>
  JSON.stringify(one.spec?.['tolerations']) === JSON.stringify(other.spec?.['tolerations']);

export async function deletePod(
  { objects, random }: Pick<ControllerDependencies, 'objects' | 'random'>,
  first: KubeObject,
  of: {
    readonly condition: DisruptionCondition;
    readonly event: EventToTell | undefined;
    readonly nowMs: number;
    /** That the Node is as it was decided on, its taints with it: must hold at each commit. */
    readonly guard: CheckWrite;
    /** Goes with the last commit. */
    readonly record: PutWrite;
  },
): Promise<PodDeletion> {
  const { nowMs, condition } = of;
  const ref: ObjectRef = {
    resource: 'pods',
    namespace: first.metadata.namespace ?? '',
    name: first.metadata.name ?? '',
  };
  let pod: KubeObject | undefined = first;
  let { event } = of;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    if (pod === undefined || pod.metadata.uid !== first.metadata.uid) return { kind: 'gone' };
    if (pod.metadata.deletionTimestamp !== undefined) return { kind: 'gone' };
    if (!sameTolerations(pod, first)) return { kind: 'changed' };
    const events = event === undefined ? [] : [eventWrite(event, { nowMs, eventUid: random.uuid() })];
    const { write, isLast } = deletionOf(pod, ref, condition, nowMs);
    const outcome = await objects.commit({
      writes: [write, ...events],
      extra: isLast ? [of.guard, of.record] : [of.guard],
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
