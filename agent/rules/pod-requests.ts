/** Requests about a pod of this node, and what their answers mean (pkg/kubelet/status/status_manager.go). */
import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { answeredWith } from './kube-answer.ts';
import { endedResizes } from './pod-status.ts';
import type { PodStatus } from './shutdown-status.ts';

export const podPath = ({ metadata }: KubeObject): string =>
  `/api/v1/namespaces/${encodeURIComponent(metadata.namespace ?? '')}/pods/${encodeURIComponent(metadata.name ?? '')}`;

/**
 * With the uid, the patch cannot change another pod of the same name. Conditions of resizes are removed when they have
 * ended; those of other types belong to other clients.
 *
 * @param reported the last status that was reported, if any
 */
export function podStatusReport(pod: KubeObject, status: PodStatus, reported?: PodStatus) {
  const ended = new Set([...endedResizes(pod.status, status), ...endedResizes(reported, status)]);
  const removed = [...ended].map((type) => ({ $patch: 'delete', type }));
  const conditions = [...recordsOf(status['conditions']), ...removed];
  return {
    method: 'PATCH',
    path: `${podPath(pod)}/status`,
    body: {
      metadata: { uid: pod.metadata.uid ?? '' },
      status: removed.length === 0 ? status : { ...status, conditions },
    },
    contentType: 'application/strategic-merge-patch+json',
  } satisfies KubeRequest;
}

/** Removes a deleted pod after its containers have stopped. */
export const finalPodDeletion = (pod: KubeObject) =>
  ({
    method: 'DELETE',
    path: podPath(pod),
    body: {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      preconditions: { uid: pod.metadata.uid ?? '' },
    },
  }) satisfies KubeRequest;

/** 404 and 409: the pod no longer exists. Another pod may have its name. */
export const isPodMissing = (answer: KubeAnswer): boolean => answeredWith(answer, 404, 409);
