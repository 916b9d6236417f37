/**
 * What a simulated machine does about its pods, in place of running anything: a pod bound to it is Running and Ready at
 * once; a deleted one ends when its grace period is over.
 */
import { formatTime, parseTimeMs } from '../../shared/kube/time.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { ApiRequest } from './api-client.ts';

export interface PodWork {
  readonly requests: readonly ApiRequest[];
  /** When the next grace period ends; undefined when none runs. Epoch milliseconds. */
  readonly dueAtMs: number | undefined;
}

interface PodCondition {
  readonly type: string;
  readonly status: string;
}

const pathOf = ({ metadata }: KubeObject): string =>
  `/api/v1/namespaces/${metadata.namespace ?? ''}/pods/${metadata.name ?? ''}`;

/** Address a pod gets: on the machine's own network, different for each pod of a machine as far as that goes. */
const podAddress = (machineAddress: string, index: number): string =>
  `${machineAddress.split('.').slice(0, 3).join('.')}.${100 + (index % 150)}`;

export function podWork(
  pods: readonly KubeObject[],
  at: { readonly nowMs: number; readonly machineAddress: string },
): PodWork {
  const requests: ApiRequest[] = [];
  let dueAtMs: number | undefined;
  pods.forEach((pod, index) => {
    const endsAtMs = parseTimeMs(pod.metadata.deletionTimestamp);
    if (endsAtMs !== undefined && endsAtMs <= at.nowMs) {
      requests.push({ method: 'DELETE', path: pathOf(pod), body: { gracePeriodSeconds: 0 } });
    } else if (endsAtMs !== undefined) {
      dueAtMs = Math.min(dueAtMs ?? endsAtMs, endsAtMs);
    } else if (!runs(pod)) {
      requests.push({
        method: 'PATCH',
        path: `${pathOf(pod)}/status`,
        body: { status: runningStatus(pod, at.nowMs, at.machineAddress, podAddress(at.machineAddress, index)) },
        contentType: 'application/strategic-merge-patch+json',
      });
    }
  });
  return { requests, dueAtMs };
}

/** Has ended, or is Running and Ready: nothing to be said. */
function runs({ status = {} }: KubeObject): boolean {
  const phase = status['phase'];
  if (phase === 'Succeeded' || phase === 'Failed') return true;
  const conditions = (status['conditions'] ?? []) as readonly PodCondition[];
  return (
    phase === 'Running' && conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True')
  );
}

function runningStatus(pod: KubeObject, nowMs: number, hostIP: string, podIP: string) {
  const startedAt = formatTime(nowMs);
  const containers = (pod.spec?.['containers'] ?? []) as readonly { readonly name: string; readonly image?: string }[];
  return {
    phase: 'Running',
    startTime: (pod.status?.['startTime'] as string | undefined) ?? startedAt,
    hostIP,
    podIP,
    podIPs: [{ ip: podIP }],
    conditions: ['Initialized', 'ContainersReady', 'Ready', 'PodScheduled'].map((type) => ({
      type,
      status: 'True',
      lastTransitionTime: startedAt,
    })),
    containerStatuses: containers.map(({ name, image = '' }) => ({
      name,
      image,
      imageID: '',
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt } },
    })),
  };
}
