/** How long a deleted pod may take to end. Source: upstream pkg/kubelet/pod_workers.go (calculateEffectiveGracePeriod). */
import type { KubeObject } from '../../shared/kube/types.ts';
import { killRequest } from './kill-request.ts';

/**
 * Of a pod that the API marked as deleted: what the deletion says, else the pod's own period; at least 1, because 0 is
 * what removes the pod from the API, and that happens when nothing of it runs. Seconds.
 */
export function deletionGraceSeconds(pod: KubeObject): number {
  return Math.max(1, killRequest(pod, pod.metadata.deletionGracePeriodSeconds).graceSeconds);
}
