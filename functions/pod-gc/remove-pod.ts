/**
 * Removes a pod that no kubelet will finish. The first commit sets its phase to Failed with the reason. The second
 * deletes it without grace period, so watchers see both changes. When the first commit fails, the pod is not deleted.
 * Source: markFailedAndDeletePod in pkg/controller/podgc/gc_controller.go.
 */

import { withDisruption } from '../../shared/fleet/eviction.rule.ts';
import type { PodRemoval, RemovalStep } from '../../shared/kinds/pods/collection.rule.ts';
import type { KubePod, ObjectRef } from '../../shared/kinds/types.ts';
import { markDeleted } from '../../shared/kubernetes/deletion.ts';
import { type PutWrite, StoreFault, type TransactWrite } from '../../shared/store/item-store.ts';
import type { ObjectStore, ObjectWrite } from '../../shared/store/object-store.ts';

export type PodRemovalOutcome =
  | { readonly kind: 'removed' }
  /** Finalizers delay the deletion; the pod is marked with a grace period of 0. */
  | { readonly kind: 'held' }
  /** The pod, or a guarded object, changed: the next tick decides again. */
  | { readonly kind: 'changed' };

function writeOf(step: RemovalStep, pod: KubePod, ref: ObjectRef, nowMs: number): ObjectWrite | undefined {
  if (step.kind === 'markFailed') {
    const before = pod.status?.conditions ?? [];
    const conditions =
      step.condition === undefined ? before : (withDisruption(before, step.condition, nowMs) ?? before);
    const status = { ...pod.status, phase: 'Failed', ...(conditions.length === 0 ? {} : { conditions }) };
    return { kind: 'update', ref, object: { ...pod, status }, previous: pod };
  }
  if ((pod.metadata.finalizers ?? []).length === 0) return { kind: 'delete', ref, previous: pod };
  const marked = markDeleted(pod, step.gracePeriodSeconds, nowMs);
  return marked === pod ? undefined : { kind: 'update', ref, object: marked, previous: pod };
}

/**
 * `pod`: the version that the removal was decided on. `guard`: conditions of every commit, such as that the Node does
 * not exist.
 *
 * @throws StoreFault when other commits kept conflicting, or the marked pod would exceed the size limit of an item
 */
export async function removePod(
  objects: ObjectStore,
  pod: KubePod,
  removal: PodRemoval,
  at: {
    readonly guard: readonly TransactWrite[];
    /** Written with the last step. */
    readonly record: PutWrite;
    readonly nowMs: number;
  },
): Promise<PodRemovalOutcome> {
  const ref: ObjectRef = { resource: 'pods', namespace: removal.namespace, name: removal.name };
  let current: KubePod = pod;
  for (const step of removal.steps) {
    const write = writeOf(step, current, ref, at.nowMs);
    if (write === undefined) return { kind: 'held' };
    const record = step === removal.steps.at(-1) ? [at.record] : [];
    const outcome = await objects.commit({ writes: [write], extra: [...at.guard, ...record] });
    switch (outcome.kind) {
      case 'committed':
        current = outcome.objects[0]!;
        break;
      case 'conflict':
      case 'extraRefused':
        return { kind: 'changed' };
      case 'tooLarge':
      case 'overfull':
        throw new StoreFault('too-large', 'the pod is too large to be marked', { retryable: false });
      case 'contended':
        throw new StoreFault('throttled', 'the pod changed too often to be removed', { retryable: true });
    }
  }
  return { kind: (current.metadata.finalizers ?? []).length > 0 ? 'held' : 'removed' };
}
