/**
 * Reports an object that a controller cannot write because it is too large. Clients may not use the size that is
 * reserved for controllers (object-store.ts), so only an object from before that limit is affected. It is skipped and
 * reported. These functions never reject: the object must not delay any other.
 *
 * Every such write is counted in a metric, which has an alarm. The log line, the event and the decision record follow
 * report-limit.ts: one per object and change within ten minutes. The record's key contains the start of that interval,
 * so two processes that find the same write one record.
 */

import type { DecisionAbout } from '../../decisions/decision-record.ts';
import { notWrittenDraft } from '../../decisions/unwritten.ts';
import { notWritten } from '../../events/event-text.ts';
import { type EventSubject, recordEvents, subjectOf } from '../../events/record-event.ts';
import * as metric from '../../functions/tick-metrics.ts';
import type { KubeObject } from '../../kinds/types.ts';
import { objectText } from '../../store/object-record.ts';
import { OBJECT_TEXT_MAX } from '../../store/object-store.ts';
import type { WorkDependencies } from '../../ticks/dependencies.ts';
import { REPORT_INTERVAL_MS, REPORTED_SUBJECTS_MAX } from './report-limit.ts';

export type ReportDependencies = Pick<
  WorkDependencies,
  'objects' | 'random' | 'log' | 'meter' | 'ledger' | 'unwritableReports'
>;

export interface UnwritableObject {
  readonly kind: 'Node' | 'Pod';
  /** The stored object. */
  readonly object: KubeObject;
  /** The change that was not written, such as `mark the node Unknown`. The same words each time identify one event. */
  readonly what: string;
  readonly nowMs: number;
}

/** Reports a write that the store refused because of the object's size. Never rejects. */
export async function reportUnwritable(dependencies: ReportDependencies, unwritable: UnwritableObject): Promise<void> {
  const { log, meter, ledger, unwritableReports } = dependencies;
  const { kind, object, what, nowMs } = unwritable;
  meter.add(metric.OBJECTS_NOT_WRITTEN, 1, 'Count', metric.ALL_FUNCTIONS);
  const subject = subjectOf(kind, object);
  switch (unwritableReports.verdictOn(`${kind}/${subject.uid}/${what}`, nowMs)) {
    case 'skip':
      return;
    case 'limit':
      log.error('further objects that are too large are only counted', { reported: REPORTED_SUBJECTS_MAX });
      return;
    case 'report':
  }
  const name = subject.namespace === '' ? subject.name : `${subject.namespace}/${subject.name}`;
  const event = { ...notWritten(kind, name, what), about: subject, once: what };
  const characters = objectText(object).length;
  const inputs = { what, characters, charactersMax: OBJECT_TEXT_MAX };
  const draft = notWrittenDraft(aboutOf(kind, subject), nowMs, inputs);
  const atMs = Math.floor(nowMs / REPORT_INTERVAL_MS) * REPORT_INTERVAL_MS;
  log.error('an object is too large to be written by a controller', { kind, name, what });
  const outcomes = await Promise.allSettled([
    recordEvents(dependencies, [event], nowMs),
    ledger.recordOnce(draft, { atMs, key: what }),
  ]);
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') {
      log.error('the report of an object that is too large could not be stored', { kind, name, error: outcome.reason });
    }
  }
}

const aboutOf = (kind: UnwritableObject['kind'], { namespace, name, uid }: EventSubject): DecisionAbout =>
  kind === 'Pod' ? { kind, namespace, name, uid } : { kind, name, uid };
