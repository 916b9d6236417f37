/**
 * Pods of a machine without a container runtime: every container runs as soon as the pod is bound to the node.
 * The simulated machines use these rules; the status itself follows from the rule of the agent.
 */
import { recordOf, recordsOf, textOf } from '../../shared/kube/normal-form.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { RunningContainer } from '../ports/pod-runtime.ts';
import { hasEnded, isContradicted, podStatusOf } from './pod-status.ts';
import type { PodStatus } from './shutdown-status.ts';

/** What a machine has reported about each of its pods. */
const REPORTED: PodStatus = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };

/** False for a finished pod, and for a pod with a stored status that says running and ready. */
export const needsStartedStatus = (pod: KubeObject): boolean =>
  !hasEnded(pod) && isContradicted(REPORTED, pod.status ?? {});

/** The status of a pod with containers that all started at this moment. */
export function startedStatus(pod: KubeObject, nowMs: number, hostIp: string | undefined): PodStatus {
  const containersOf = (field: 'containers' | 'initContainers'): RunningContainer[] =>
    recordsOf(recordOf(pod.spec)[field]).map((container) => ({
      name: textOf(container['name']),
      state:
        field === 'containers' || container['restartPolicy'] === 'Always'
          ? { kind: 'running', startedAtMs: nowMs }
          : { kind: 'terminated', exitCode: 0, reason: 'Completed', startedAtMs: nowMs, finishedAtMs: nowMs },
      restartCount: 0,
    }));
  const { uid = '', namespace = '', name = '' } = pod.metadata;
  const running = {
    uid,
    namespace,
    name,
    initContainers: containersOf('initContainers'),
    containers: containersOf('containers'),
  };
  return podStatusOf({ pod, running, before: pod.status ?? {}, nowMs, hostIp });
}
