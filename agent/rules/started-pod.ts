/**
 * Pods of a machine without a container runtime: every container runs as soon as the pod is bound to the node, and has
 * other resources as soon as the node allocates them. The simulated machines use these rules; the status itself follows
 * from the rule of the agent.
 */

import { defined } from '../../shared/defined.ts';
import type { ContainerStatus, KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { RunningContainer } from '../ports/pod-runtime.ts';
import { containerResize, type ResizeProgress, resizeRefusal, resourcesOf, withResources } from './pod-resize.ts';
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
  const resize = { pending: pendingOf(pod) };
  return podStatusOf({ pod: asReported(pod), running, before: pod.status ?? {}, nowMs, hostIp, resize });
}

const statusesOf = ({ status }: KubePod): readonly ContainerStatus[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];

/** With the resources that the machine has allocated: those that it has reported. */
const asReported = (pod: KubePod): KubePod =>
  withResources(pod, (name) => statusesOf(pod).find((each) => each.name === name)?.resources);

const PENDING = 'PodResizePending';

/** The refusal of a resize that the machine has reported. */
function pendingOf({ status }: KubePod): ResizeProgress['pending'] {
  const found = status?.conditions?.find(({ type }) => type === PENDING);
  if (found === undefined) return undefined;
  const { reason, message = '', observedGeneration: generation } = found;
  return { reason: reason === 'Infeasible' ? reason : 'Deferred', message, ...defined({ generation }) };
}

/**
 * The status of a started pod after the machine has decided about its resize. Undefined: it stays. A Node without
 * allocatable resources has enough for every pod.
 *
 * @param podsOf all pods of the machine
 */
export function resizedStatus(
  pod: KubePod,
  podsOf: () => Iterable<KubePod>,
  node: KubeObject,
  nowMs: number,
): PodStatus | undefined {
  const { generation } = pod.metadata;
  const before = pendingOf(pod);
  if (hasEnded(pod)) return undefined;
  if (before === undefined && !statusesOf(pod).some(({ resources }) => resources !== undefined)) return undefined;
  const allocated = asReported(pod);
  const isFinal = before?.reason === 'Infeasible' && before.generation === generation;
  if (allocated === pod ? before === undefined : isFinal) return undefined;
  const others = [...podsOf()].filter((each) => each !== pod && !hasEnded(each));
  const machine = { operatingSystem: 'linux', maySwap: false, assignsProcessors: false };
  const facts = { desired: pod, allocated, node, others: others.map(asReported), machine };
  const isChecked = allocated !== pod && recordOf(node.status)['allocatable'] !== undefined;
  const refusal = isChecked ? resizeRefusal(facts) : undefined;
  const observed = defined({ observedGeneration: generation });
  const type = PENDING;
  if (refusal !== undefined) {
    if (before?.reason === refusal.reason && before.message === refusal.message && before.generation === generation)
      return undefined;
    const since = pod.status?.conditions?.find((each) => each.type === type)?.lastTransitionTime;
    const lastTransitionTime = since ?? formatTime(nowMs);
    return { ...observed, conditions: [{ type, status: 'True', ...refusal, ...observed, lastTransitionTime }] };
  }
  const resized = (status: ContainerStatus): ContainerStatus => resizedContainer(pod, status, nowMs);
  const { initContainerStatuses, containerStatuses } = pod.status ?? {};
  return {
    ...observed,
    ...defined({
      initContainerStatuses: initContainerStatuses?.map(resized),
      containerStatuses: containerStatuses?.map(resized),
    }),
  };
}

function resizedContainer(pod: KubePod, status: ContainerStatus, nowMs: number): ContainerStatus {
  const { name = '', resources: actual = {}, state, restartCount = 0 } = status;
  const { initContainers = [], containers = [] } = pod.spec ?? {};
  const container = [...initContainers, ...containers].find((each) => each.name === name);
  const resources = resourcesOf(pod, name);
  if (container === undefined || resources === undefined) return status;
  const changed = { ...status, ...defined({ allocatedResources: resources.requests }), resources };
  const startedAt = state?.running?.startedAt;
  if (containerResize(container, actual) !== 'restart' || startedAt == null) return changed;
  const finishedAt = formatTime(nowMs);
  return {
    ...changed,
    restartCount: restartCount + 1,
    state: { running: { startedAt: finishedAt } },
    lastState: { terminated: { exitCode: 0, reason: 'Completed', startedAt, finishedAt } },
  };
}
