/**
 * Pods of a machine without a container runtime: every container runs as soon as the pod is bound to the node.
 * The simulated machines use these rules; the status itself follows from the rule of the agent.
 */

import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import type { RunningContainer } from '../ports/pod-runtime.ts';
import { hasEnded, isContradicted, podStatusOf } from './pod-status.ts';
import type { PodStatus } from './shutdown-status.ts';

/** Images that upstream's tests name when they want one that cannot be pulled. */
const ABSENT_IMAGE = /non-?existent|invalid|:404$/;

const isPulled = (container: Readonly<Record<string, unknown>>): boolean =>
  !ABSENT_IMAGE.test(textOf(container['image']));

const allPulled = (pod: KubeObject): boolean => {
  const spec = recordOf(pod.spec);
  return [...recordsOf(spec['initContainers']), ...recordsOf(spec['containers'])].every(isPulled);
};

/** What a machine has reported about each of its pods. */
const REPORTED: PodStatus = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const REPORTED_WITHOUT_IMAGE: PodStatus = { phase: 'Pending', conditions: [{ type: 'Ready', status: 'False' }] };

/** False for a finished pod, and for a pod with a stored status that says what its machine reports. */
export const needsStartedStatus = (pod: KubeObject): boolean =>
  !hasEnded(pod) && isContradicted(allPulled(pod) ? REPORTED : REPORTED_WITHOUT_IMAGE, pod.status ?? {});

/** The status of a pod with containers that all started at one moment, but for those without an image. */
export function startedStatus(
  pod: KubeObject,
  nowMs: number,
  hostIp: string | undefined,
  startedAtMs = nowMs,
): PodStatus {
  const containersOf = (field: 'containers' | 'initContainers'): RunningContainer[] =>
    recordsOf(recordOf(pod.spec)[field]).map((container) => ({
      name: textOf(container['name']),
      state: !isPulled(container)
        ? { kind: 'waiting', reason: 'ErrImagePull' }
        : field === 'containers' || container['restartPolicy'] === 'Always'
          ? { kind: 'running', startedAtMs }
          : { kind: 'terminated', exitCode: 0, reason: 'Completed', startedAtMs, finishedAtMs: startedAtMs },
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
