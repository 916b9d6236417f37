/**
 * Priorities of pods, and which pods are critical.
 * Source: pkg/kubelet/types/pod_update.go, pkg/apis/scheduling/types.go.
 */
import { MIRROR_POD_ANNOTATION } from '../../shared/access/node-restriction.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';

/** The priority of system-cluster-critical; system-node-critical has 1000 more. */
export const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

/** The priority of a pod without one: the default of the field. */
const DEFAULT_PRIORITY = 0;

/** A signed 32-bit number; a higher number is more important. */
export function priorityOf(pod: KubeObject): number {
  const priority = pod.spec?.['priority'];
  return typeof priority === 'number' ? priority : DEFAULT_PRIORITY;
}

/** A static pod: from a file or a URL on the node, not from the API. */
export function isStaticPod(pod: KubeObject): boolean {
  const source = pod.metadata.annotations?.['kubernetes.io/config.source'];
  return source !== undefined && source !== 'api';
}

/** A mirror pod: represents a static pod in the API. */
export const isMirrorPod = (pod: KubeObject): boolean =>
  pod.metadata.annotations?.[MIRROR_POD_ANNOTATION] !== undefined;

/** The name of the priority class does not matter. */
export const isCriticalPod = (pod: KubeObject): boolean =>
  isStaticPod(pod) || isMirrorPod(pod) || priorityOf(pod) >= SYSTEM_CRITICAL_PRIORITY;
