/** The request that writes an event, and what its answer means. Source: client-go tools/record/event.go. */
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { answeredWith, isTransient } from './kube-answer.ts';
import type { NodeEvent } from './node-event.ts';

const SOURCE = 'kubelet';
/** Namespace of events about cluster-scoped objects. */
const CLUSTER_NAMESPACE = 'default';

/** The object that an event is about. */
export interface EventSubject {
  readonly kind: 'Node' | 'Pod' | 'PersistentVolumeClaim';
  /** '' for a Node. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface RecordedEvent {
  /** Name of the Event object. */
  readonly name: string;
  readonly subject: EventSubject;
  readonly event: NodeEvent;
  /** Wall clock, for the object. Milliseconds since the Unix epoch. */
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly count: number;
  /** Whether the server has the object. */
  readonly isCreated: boolean;
}

/**
 * The name as upstream makes it: that of the object, and the time in nanoseconds in base 16. The sequence number keeps
 * names unique.
 */
export const eventName = (objectName: string, nowMs: number, sequence: number): string =>
  `${objectName}.${(BigInt(nowMs) * 1_000_000n + BigInt(sequence % 1_000_000)).toString(16)}`;

/** Creates the Event, or updates the count of an existing one. */
export function eventRequest(recorded: RecordedEvent, nodeName: string): KubeRequest {
  const { name, subject, event } = recorded;
  const namespace = subject.namespace === '' ? CLUSTER_NAMESPACE : subject.namespace;
  const path = `/api/v1/namespaces/${namespace}/events`;
  const series = { count: recorded.count, lastTimestamp: formatTime(recorded.lastAtMs) };
  if (recorded.isCreated) {
    return { method: 'PATCH', path: `${path}/${name}`, body: series, contentType: 'application/merge-patch+json' };
  }
  return {
    method: 'POST',
    path,
    body: {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace },
      involvedObject: { apiVersion: 'v1', ...subject },
      type: event.type,
      reason: event.reason,
      message: event.message,
      source: { component: SOURCE, host: nodeName },
      reportingComponent: SOURCE,
      reportingInstance: nodeName,
      firstTimestamp: formatTime(recorded.firstAtMs),
      ...series,
    },
  };
}

/**
 * - `stored`: the server has the event.
 * - `expired`: the server has deleted the event; it is created again.
 * - `failed`: the same request may succeed later.
 * - `refused`: the same request would be refused again.
 */
export type EventOutcome = 'stored' | 'expired' | 'failed' | 'refused';

export function eventOutcome(answer: KubeAnswer, { isCreated }: Pick<RecordedEvent, 'isCreated'>): EventOutcome {
  if (answeredWith(answer, 404) && isCreated) return 'expired';
  // 409 on a POST: an earlier answer was lost.
  if (answeredWith(answer, 200, 201) || (answeredWith(answer, 409) && !isCreated)) return 'stored';
  return isTransient(answer) || answeredWith(answer, 401) ? 'failed' : 'refused';
}
