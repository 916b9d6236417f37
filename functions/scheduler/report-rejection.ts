/**
 * Shows on a pod why it is not scheduled: condition, event and decision record, in one commit when the message changes.
 * An attempt that says nothing new writes nothing to the pod; its event is counted at most once per minute.
 */

import { eventWrite, type PendingEvent, recordEvents } from '../../shared/events/record-event.ts';
import { reportUnwritable } from '../../shared/fleet/nodes/report-unwritable.ts';
import type { KubePod, PodCondition } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { SCHEDULER_NAME, type SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { shortHash } from '../../shared/text.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import type { SchedulerDraft } from './decisions.ts';
import { eventNote } from './failure-message.rule.ts';

/** Least time between two counts of the same event. Milliseconds. */
const EVENT_INTERVAL_MS = 60_000;

export interface RejectionReport {
  readonly pod: SchedulablePod;
  /** The stored pod. */
  readonly object: KubePod;
  readonly reason: 'Unschedulable' | 'SchedulerError';
  readonly message: string;
  /** Node to nominate; '': none. Absent: the nomination stays. */
  readonly nominatedNodeName?: string;
  readonly draft?: SchedulerDraft;
  /** When the event was last written. Epoch milliseconds; 0: never. */
  readonly eventAtMs: number;
}

type Dependencies = Pick<WorkDependencies, 'objects' | 'random' | 'ledger' | 'log' | 'meter' | 'unwritableReports'>;

export interface ReportedRejection {
  /** The pod as stored now; undefined: it changed meanwhile, and nothing was written. */
  readonly stored: KubePod | undefined;
  readonly eventAtMs: number;
}

function failureEvent({ namespace, name, uid }: SchedulablePod, message: string): PendingEvent {
  return {
    type: 'Warning',
    reason: 'FailedScheduling',
    message: eventNote(message),
    source: SCHEDULER_NAME,
    action: 'Scheduling',
    about: { kind: 'Pod', namespace, name, uid },
    series: shortHash(message),
  };
}

/** The transition time moves only with the status. */
export function withCondition(
  conditions: readonly PodCondition[],
  wanted: { readonly reason: string; readonly message: string },
  nowMs: number,
): PodCondition[] {
  const present = conditions.find(({ type }) => type === 'PodScheduled');
  const condition: PodCondition = {
    type: 'PodScheduled',
    status: 'False',
    lastProbeTime: null,
    lastTransitionTime: present?.status === 'False' ? (present.lastTransitionTime ?? null) : formatTime(nowMs),
    ...wanted,
  };
  return [...conditions.filter((each) => each !== present), condition];
}

export async function reportRejection(
  dependencies: Dependencies,
  report: RejectionReport,
  nowMs: number,
): Promise<ReportedRejection> {
  const { objects, random, ledger } = dependencies;
  const { pod, object, reason, message, nominatedNodeName = pod.nominatedNodeName, draft } = report;
  const condition = pod.scheduledCondition;
  const isShown = condition?.status === 'False' && condition.reason === reason && condition.message === message;
  const event = failureEvent(pod, message);
  if (isShown && nominatedNodeName === pod.nominatedNodeName) {
    if (nowMs - report.eventAtMs < EVENT_INTERVAL_MS) return { stored: object, eventAtMs: report.eventAtMs };
    await recordEvents(dependencies, [event], nowMs);
    return { stored: object, eventAtMs: nowMs };
  }
  const { nominatedNodeName: _nominated, ...status } = object.status ?? {};
  const next: KubePod = {
    ...object,
    status: {
      ...status,
      conditions: withCondition(status.conditions ?? [], { reason, message }, nowMs),
      ...(nominatedNodeName === '' ? {} : { nominatedNodeName }),
    },
  };
  const ref = { resource: 'pods', namespace: pod.namespace, name: pod.name };
  const update = { kind: 'update', ref, object: next, previous: object } as const;
  const extra = draft === undefined ? [] : [ledger.write(draft)];
  const outcome = await objects.commit({
    writes: [update, eventWrite(event, { nowMs, eventUid: random.uuid() })],
    extra,
  });
  switch (outcome.kind) {
    case 'committed':
      return { stored: outcome.objects[0]!, eventAtMs: nowMs };
    case 'tooLarge':
    case 'overfull':
      await reportUnwritable(dependencies, { kind: 'Pod', object, what: 'set its PodScheduled condition', nowMs });
      return { stored: object, eventAtMs: nowMs };
    case 'conflict': {
      if (outcome.index === 0) return { stored: undefined, eventAtMs: report.eventAtMs };
      // The message has been shown before: its event exists and is counted.
      const again = await objects.commit({ writes: [update], extra });
      if (again.kind !== 'committed') return { stored: undefined, eventAtMs: report.eventAtMs };
      await recordEvents(dependencies, [event], nowMs);
      return { stored: again.objects[0]!, eventAtMs: nowMs };
    }
    default:
      return { stored: undefined, eventAtMs: report.eventAtMs };
  }
}

/** A pod that was deleted while it waited. */
export const reportDeleted = (dependencies: Dependencies, pod: SchedulablePod, nowMs: number): Promise<void> =>
  recordEvents(dependencies, [failureEvent(pod, `skip schedule deleting pod: ${pod.key}`)], nowMs);
