/**
 * POST of pods/eviction: a deletion that the pod's disruption budgets must allow.
 *
 * The pod and its budgets change in one transaction, and a budget that somebody else moved meanwhile refuses it: of two
 * evictions that count on the same last disruption, one is decided again and finds it gone. Kubernetes: "API-initiated
 * eviction"; upstream pkg/registry/core/pod/storage/eviction.go. Unlike there, a pod under several budgets may go when
 * all of them allow it.
 */

import { recordsOf } from '../../kube/normal-form.ts';
import { isTerminated } from '../../kube/pods/phase.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import { isStatusError } from '../../kube/request/respond.ts';
import * as status from '../../kube/status.ts';
import { formatTime } from '../../kube/time.ts';
import type { KubeObject } from '../../kube/types.ts';
import { COMMIT_OBJECTS_MAX, type ObjectWrite } from '../../store/object-store.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { mayEvict } from '../kinds/budget-status.ts';
import { poddisruptionbudgets, pods } from '../kinds/registry.ts';
import { type DeleteOptions, deleteObject } from './delete-object.ts';
import type { WriteOptions } from './write-options.ts';

/** When too many evictions meet at one budget: clients wait this long and ask again by themselves. */
const RETRY_AFTER_SECONDS = 2;

export async function evictPod(
  dependencies: ApiDependencies,
  target: ResourceTarget,
  wanted: DeleteOptions,
  options: WriteOptions,
): Promise<void> {
  try {
    await deleteObject(dependencies, pods, target, wanted, options, async (pod) => ({
      mark: (marked) => withDisruptionTarget(marked, options.nowMs),
      along: disruptsNothing(pod) ? [] : await takeFromBudgets(dependencies, pod),
    }));
  } catch (error) {
    if (!isStatusError(error) || !lostTheRace(error, wanted)) throw error;
    throw status.tooManyRequests('Cannot evict pod: its disruption budget keeps changing.', {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
}

/** A conflict that the client did not ask for by a precondition. */
const lostTheRace = (error: status.StatusError, { preconditions }: DeleteOptions): boolean =>
  error.status.reason === 'Conflict' &&
  preconditions?.resourceVersion === undefined &&
  preconditions?.uid === undefined;

/** A pod that does no work yet, or no more, or is going anyway. */
const disruptsNothing = (pod: KubeObject): boolean =>
  isTerminated(pod) || pod.status?.['phase'] === 'Pending' || pod.metadata.deletionTimestamp !== undefined;

async function takeFromBudgets(dependencies: ApiDependencies, pod: KubeObject): Promise<readonly ObjectWrite[]> {
  const budgets = await dependencies.budgetsCovering(pod);
  if (budgets.length >= COMMIT_OBJECTS_MAX) {
    throw status.disruptionBudgetExceeded(`${budgets.length} budgets cover this pod; ${COMMIT_OBJECTS_MAX - 1} may`);
  }
  return budgets.map((previous) => {
    const answer = mayEvict(previous, pod);
    if (answer.kind === 'refused') throw status.disruptionBudgetExceeded(answer.why);
    const { namespace = '', name = '' } = previous.metadata;
    return {
      kind: 'update',
      ref: { resource: poddisruptionbudgets.resource, namespace, name },
      object: answer.budget,
      previous,
    };
  });
}

/** Why the pod ends, for whoever made it. Kubernetes: "Disruptions", pod disruption conditions. */
function withDisruptionTarget(pod: KubeObject, nowMs: number): KubeObject {
  const conditions = recordsOf(pod.status?.['conditions']).filter((each) => each['type'] !== 'DisruptionTarget');
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: formatTime(nowMs),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  return { ...pod, status: { ...pod.status, conditions: [...conditions, condition] } };
}
