/** What a simulated machine writes about its pods. It runs nothing: a pod that is bound to it runs at once. */
import { startedStatus } from '../agent/rules/started-pod.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import type { ConditionStatus } from '../shared/kubernetes/kubernetes.ts';
import { recordsOf } from '../shared/kubernetes/normal-form.ts';
import { formatTime } from '../shared/kubernetes/time.ts';
import type { MachineClock, TimeField } from './faults/lying-clocks.ts';

interface PodCondition {
  readonly type: string;
  readonly status: ConditionStatus;
}

export const readyOfPod = (pod: KubeObject): ConditionStatus | 'absent' =>
  ((pod.status?.['conditions'] as readonly PodCondition[] | undefined) ?? []).find(({ type }) => type === 'Ready')
    ?.status ?? 'absent';

/** The status of a started pod, with every time and count that an agent writes as the clock of the machine shows it. */
export function timedStatus(pod: KubeObject, nowMs: number, clock: MachineClock): Readonly<Record<string, unknown>> {
  const at = (field: TimeField): string => formatTime(clock.timeMs(field, nowMs));
  const status = startedStatus(pod, nowMs, undefined);
  const lastState = { terminated: { exitCode: 1, startedAt: at('startedAt'), finishedAt: at('finishedAt') } };
  return {
    ...status,
    startTime: at('startTime'),
    conditions: recordsOf(status['conditions']).map((condition) => ({
      ...condition,
      lastProbeTime: at('lastProbeTime'),
      lastTransitionTime: at(condition['type'] === 'PodScheduled' ? 'podScheduledTime' : 'podTransitionTime'),
    })),
    containerStatuses: recordsOf(status['containerStatuses']).map((container) => ({
      ...container,
      restartCount: clock.count('restartCount', 0, nowMs),
      state: { running: { startedAt: at('startedAt') } },
      lastState,
    })),
  };
}

/** The event that an agent records about a pod that it has started. */
export function startedEvent(pod: KubeObject, nowMs: number, clock: MachineClock): KubeObject {
  const { name = '', namespace = '', uid = '' } = pod.metadata;
  const at = (field: TimeField): string => formatTime(clock.timeMs(field, nowMs));
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.${nowMs.toString(16)}`, namespace },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', name, namespace, uid },
    reason: 'Started',
    message: 'Started container main',
    type: 'Normal',
    source: { component: 'kubelet' },
    firstTimestamp: at('firstTimestamp'),
    lastTimestamp: at('lastTimestamp'),
    count: clock.count('eventCount', 1, nowMs),
  };
}
