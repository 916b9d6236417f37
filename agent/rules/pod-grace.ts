/** The grace period of a deleted pod. Source: upstream pkg/kubelet/pod_workers.go (calculateEffectiveGracePeriod). */
import type { KubeObject } from '../../shared/kinds/types.ts';
import { killRequest } from './kill-request.ts';

/**
 * The grace period of the deletion, or else of the pod's spec. At least 1: the value 0 removes the pod from the API,
 * which happens only after its containers have stopped. Seconds.
 */
export function deletionGraceSeconds(pod: KubeObject): number {
  return Math.max(1, killRequest(pod, pod.metadata.deletionGracePeriodSeconds).graceSeconds);
}
