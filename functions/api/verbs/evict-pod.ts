/**
 * POST of pods/eviction: a deletion that the pod's disruption budgets must allow.
 *
 * The pod and its budgets change in one transaction, which fails when another writer changed a budget. When two
 * evictions need the same last disruption, the second is decided again and refused.
 *
 * Kubernetes: "API-initiated eviction"; upstream pkg/registry/core/pod/storage/eviction.go. Upstream answers 500 to a
 * pod with several budgets. Here all of them must allow the eviction.
 */

import { mayEvict } from '../../../shared/kinds/pods/budget-status.ts';
import { isTerminated } from '../../../shared/kinds/pods/resource.ts';
import { poddisruptionbudgets, pods } from '../../../shared/kinds/registry.ts';
import type { KubeObject, KubePod, PodCondition } from '../../../shared/kinds/types.ts';
import { isStatusError } from '../../../shared/kubernetes/http.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { COMMIT_OBJECTS_MAX, type ObjectWrite } from '../../../shared/store/object-store.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { type DeleteOptions, deleteObject } from './delete-object.ts';
import type { WriteOptions } from './write-options.ts';

/** Clients repeat an eviction after this time when too many evictions contend for one budget. */
const RETRY_AFTER_SECONDS = 2;

export async function evictPod(
  dependencies: ApiDependencies,
  target: ResourceTarget,
  requested: DeleteOptions,
  options: WriteOptions,
): Promise<void> {
  try {
    await deleteObject(dependencies, pods, target, requested, options, async (pod) => ({
      mark: (marked) => withDisruptionTarget(marked, options.nowMs),
      along: needsNoBudget(pod) ? [] : await budgetWrites(dependencies, pod),
    }));
  } catch (error) {
    if (!isStatusError(error) || !isContention(error, requested)) throw error;
    throw status.tooManyRequests('Cannot evict pod: its disruption budget keeps changing.', {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
}

/** True for a conflict with another writer, as opposed to an unmet precondition of the client. */
const isContention = (error: status.StatusError, { preconditions }: DeleteOptions): boolean =>
  error.status.reason === 'Conflict' &&
  preconditions?.resourceVersion === undefined &&
  preconditions?.uid === undefined;

/** True when no budget counts the pod: it does not run yet, has terminated, or is being deleted. */
const needsNoBudget = (pod: KubePod): boolean =>
  isTerminated(pod) || pod.status?.phase === 'Pending' || pod.metadata.deletionTimestamp !== undefined;

/** Writes that use one allowed disruption of each budget of the pod. @throws StatusError 429 when one allows none */
async function budgetWrites(dependencies: ApiDependencies, pod: KubeObject): Promise<readonly ObjectWrite[]> {
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

/** The reason of the deletion, for the owner of the pod. Kubernetes: "Disruptions", pod disruption conditions. */
function withDisruptionTarget(pod: KubePod, nowMs: number): KubePod {
  const conditions = (pod.status?.conditions ?? []).filter(({ type }) => type !== 'DisruptionTarget');
  const condition: PodCondition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: formatTime(nowMs),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  return { ...pod, status: { ...pod.status, conditions: [...conditions, condition] } };
}
