/**
 * Which pods the node cannot do without.
 * Source: pkg/kubelet/types/pod_update.go, pkg/apis/scheduling/types.go.
 */
import { MIRROR_POD_ANNOTATION } from '../../shared/domain/access/node-restriction.ts';
import type { KubeObject } from '../../shared/kube/types.ts';

/** Of the class system-cluster-critical; system-node-critical has 1000 more. */
export const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

/** Of a pod that says none: the default of the field. */
const DEFAULT_PRIORITY = 0;

/** A signed 32-bit number; a higher one matters more. */
export function priorityOf(pod: KubeObject): number {
  const priority = pod.spec?.['priority'];
  return typeof priority === 'number' ? priority : DEFAULT_PRIORITY;
}

/** Comes from a file or a URL of the node, not from the API. */
export function isStaticPod(pod: KubeObject): boolean {
  const source = pod.metadata.annotations?.['kubernetes.io/config.source'];
  return source !== undefined && source !== 'api';
}

/** Stands in the API for a static pod. */
export const isMirrorPod = (pod: KubeObject): boolean =>
  pod.metadata.annotations?.[MIRROR_POD_ANNOTATION] !== undefined;

/** The class's name is not looked at. */
export const isCriticalPod = (pod: KubeObject): boolean =>
  isStaticPod(pod) || isMirrorPod(pod) || priorityOf(pod) >= SYSTEM_CRITICAL_PRIORITY;
