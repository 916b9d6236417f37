/**
 * A request to terminate one pod.
 * Source: killPodNow in pkg/kubelet/pod_workers.go.
 */
import type { KubeObject } from '../../shared/kinds/types.ts';

const LEAST_WAIT_SECONDS = 10;

export interface KillRequest {
  /** How long the containers have to terminate by themselves. */
  readonly graceSeconds: number;
  /** When to stop waiting for the pod, with an error. */
  readonly giveUpAfterSeconds: number;
}

/** The grace period of the pod's spec; undefined if it has none. Seconds. */
export function terminationGraceOf(pod: KubeObject): number | undefined {
  const own = pod.spec?.['terminationGracePeriodSeconds'];
  return typeof own === 'number' ? own : undefined;
}

/** `overrideSeconds` overrides the pod's own period. Without either, the grace period is 0. */
export function killRequest(pod: KubeObject, overrideSeconds: number | undefined): KillRequest {
  const graceSeconds = overrideSeconds ?? terminationGraceOf(pod) ?? 0;
  return {
    graceSeconds,
    giveUpAfterSeconds: Math.max(LEAST_WAIT_SECONDS, graceSeconds + Math.floor(graceSeconds / 2)),
  };
}
