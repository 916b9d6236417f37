import { freshMetadata, inheritMetadata, typed, withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { canonicalMicroTime, canonicalTime } from '../../kubernetes/time.ts';
import type { Prepare } from '../served-kind.ts';
import type { KubeEvent } from '../types.ts';

const timeOrNull = (value: unknown, canonical: (text: string) => string): string | null =>
  typeof value === 'string' ? canonical(value) : null;

function storedForm(event: KubeEvent): KubeEvent {
  const { apiVersion: _apiVersion, kind: _kind, metadata, ...body } = event;
  const tidy = withoutEmpty(withoutNulls<Partial<KubeEvent>>(body), 'reason', 'message', 'type', 'count', 'action');
  return {
    ...typed('', 'v1', 'Event', { metadata }),
    ...tidy,
    involvedObject: withoutEmpty(
      tidy.involvedObject ?? {},
      'kind',
      'namespace',
      'name',
      'uid',
      'apiVersion',
      'resourceVersion',
      'fieldPath',
    ),
    source: withoutEmpty(tidy.source ?? {}, 'component', 'host'),
    reportingComponent: tidy.reportingComponent ?? '',
    reportingInstance: tidy.reportingInstance ?? '',
    // Upstream writes these fields as null when they have no value.
    firstTimestamp: timeOrNull(tidy.firstTimestamp, canonicalTime),
    lastTimestamp: timeOrNull(tidy.lastTimestamp, canonicalTime),
    eventTime: timeOrNull(tidy.eventTime, canonicalMicroTime),
  };
}

export const prepareEvent: Prepare = {
  hasGeneration: false,
  prepareForCreate: (object) => storedForm({ ...object, metadata: freshMetadata(object.metadata) }),
  prepareForUpdate: (next, old) => storedForm({ ...next, metadata: inheritMetadata(next.metadata, old.metadata) }),
};
