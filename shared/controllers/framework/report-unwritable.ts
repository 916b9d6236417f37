/**
 * An object that cannot be written because it is too large, although clients may not fill the headroom of controllers
 * (object-store.ts): one from before that limit. It is skipped and reported: a metric, a log line, and an event about the
 * object. It must not delay any other object, so nothing here rejects.
 */

import { notWritten } from '../../domain/events/event-text.ts';
import { ALL_FUNCTIONS } from '../../domain/functions/tick-metrics.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { ControllerDependencies } from './dependencies.ts';
import * as metric from './metrics.ts';
import { type EventSubject, recordEvents, subjectOf } from './record-event.ts';

type Dependencies = Pick<ControllerDependencies, 'objects' | 'random' | 'log' | 'meter'>;

/** `what` was not done, such as `mark Ready=Unknown`: the same words each time, so that the event is one. Never rejects. */
export async function reportUnwritable(
  dependencies: Dependencies,
  of: {
    readonly kind: EventSubject['kind'];
    readonly object: KubeObject;
    readonly what: string;
    readonly nowMs: number;
  },
): Promise<void> {
  const { log, meter } = dependencies;
  const { kind, object, what, nowMs } = of;
  const about = subjectOf(kind, object);
  const name = about.namespace === '' ? about.name : `${about.namespace}/${about.name}`;
  meter.add(metric.OBJECTS_NOT_WRITTEN, 1, 'Count', ALL_FUNCTIONS);
  log.error('an object is too large to be written by a controller', { kind, name, what });
  const event = { ...notWritten(kind, name, what), about, once: what };
  await recordEvents(dependencies, [event], nowMs).catch((fault: unknown) =>
    log.error('the event about an object that is too large could not be stored', { kind, name, error: fault }),
  );
}
