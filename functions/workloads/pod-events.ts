/** Events about an owner of pods, in the words of pkg/controller/controller_utils.go. */
import { type EventSubject, type PendingEvent, recordEvents } from '../../shared/events/record-event.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import { shardOf } from '../../shared/store/layout.ts';
import type { WorkloadDependencies } from './dependencies.ts';

/** Similar events beyond this number become one, as in upstream's correlator. */
const SINGLE_EVENTS_MAX = 10;

export interface EventsAbout {
  readonly about: EventSubject;
  /** The controller, such as `replicaset-controller`. */
  readonly source: string;
}

export type PodAct = 'created' | 'deleted';

/** Text of an event about one pod. */
export type PodEventText = (act: PodAct, name: string) => string;

const plainText: PodEventText = (act, name) => `${act === 'created' ? 'Created' : 'Deleted'} pod: ${name}`;

type Dependencies = Pick<WorkloadDependencies, 'objects' | 'random'>;

/** Pods that one transaction created or deleted. */
export async function recordPodEvents(
  dependencies: Dependencies,
  of: EventsAbout,
  done: {
    readonly act: PodAct;
    readonly names: readonly string[];
    readonly text?: PodEventText;
    /** Distinguishes events about pods that had the same name. */
    readonly occurrence?: string;
  },
  nowMs: number,
): Promise<void> {
  const { act, names, text = plainText, occurrence = '' } = done;
  const reason = act === 'created' ? 'SuccessfulCreate' : 'SuccessfulDelete';
  const isMany = names.length > SINGLE_EVENTS_MAX;
  const events = names.slice(0, isMany ? 1 : names.length).map(
    (name): PendingEvent => ({
      type: 'Normal',
      reason,
      message: `${isMany ? '(combined from similar events): ' : ''}${text(act, name)}`,
      ...of,
      once: occurrence === '' ? name : `${name}/${occurrence}`,
    }),
  );
  // One head and one log item for all of them.
  const wantedShard = shardOf(of.about.uid, shardsOf('events'));
  await recordEvents(dependencies, events, nowMs, { wantedShard });
}

/** Once for each generation of the owner and each message. */
export async function recordFailedCreate(
  dependencies: Dependencies,
  of: EventsAbout,
  failed: {
    readonly generation: number;
    readonly message: string;
    readonly text?: (message: string) => string;
  },
  nowMs: number,
): Promise<void> {
  const { generation, message, text = (cause) => `Error creating: ${cause}` } = failed;
  const event: PendingEvent = {
    type: 'Warning',
    reason: 'FailedCreate',
    message: text(message),
    ...of,
    once: `${generation}/${message}`,
  };
  await recordEvents(dependencies, [event], nowMs);
}
