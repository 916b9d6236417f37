/** Events about an owner of pods, in the words of pkg/controller/controller_utils.go. */
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { type EventSubject, type PendingEvent, recordEvents } from '../framework/record-event.ts';

/** Similar events beyond this number become one, as in upstream's correlator. */
const SINGLE_EVENTS_MAX = 10;

export interface EventsAbout {
  readonly about: EventSubject;
  /** The controller, such as `replicaset-controller`. */
  readonly source: string;
}

type Dependencies = Pick<ControllerDependencies, 'objects' | 'random'>;

/** Pods that one transaction created or deleted. */
export async function recordPodEvents(
  dependencies: Dependencies,
  of: EventsAbout,
  { act, names }: { readonly act: 'created' | 'deleted'; readonly names: readonly string[] },
  nowMs: number,
): Promise<void> {
  const [reason, verb] = act === 'created' ? ['SuccessfulCreate', 'Created'] : ['SuccessfulDelete', 'Deleted'];
  const isMany = names.length > SINGLE_EVENTS_MAX;
  const events = names.slice(0, isMany ? 1 : names.length).map(
    (name): PendingEvent => ({
      type: 'Normal',
      reason,
      message: `${isMany ? '(combined from similar events): ' : ''}${verb} pod: ${name}`,
      ...of,
      once: name,
    }),
  );
  await recordEvents(dependencies, events, nowMs);
}

/** Once for each generation of the owner and each message. */
export async function recordFailedCreate(
  dependencies: Dependencies,
  of: EventsAbout,
  { generation, message }: { readonly generation: number; readonly message: string },
  nowMs: number,
): Promise<void> {
  const event: PendingEvent = {
    type: 'Warning',
    reason: 'FailedCreate',
    message: `Error creating: ${message}`,
    ...of,
    once: `${generation}/${message}`,
  };
  await recordEvents(dependencies, [event], nowMs);
}
