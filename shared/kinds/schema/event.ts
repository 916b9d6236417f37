import { metadata, objectReference } from '../../kubernetes/schema/meta.ts';
import {
  always,
  embedded,
  int32,
  kindStruct,
  microTime,
  optionalStruct,
  required,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema/schema.ts';

const CORE = 'io.k8s.api.core.v1';
const EVENTS = 'io.k8s.api.events.v1';

const eventSource = struct(`${CORE}.EventSource`, 'Who reports an event.', {
  component: text('Component that reports.'),
  host: text('Node it reports from.'),
});

const coreEventSeries = struct(`${CORE}.EventSeries`, 'An event that keeps happening.', {
  count: int32('How often it happened so far.'),
  lastObservedTime: always(microTime('When it last happened.')),
});

const eventsEventSeries = struct(`${EVENTS}.EventSeries`, 'An event that keeps happening.', {
  count: required(int32('How often it happened so far.')),
  lastObservedTime: required(microTime('When it last happened.')),
});

export const coreEvent: StructSchema = kindStruct(
  `${CORE}.Event`,
  { group: '', version: 'v1', kind: 'Event' },
  'Event is a report of an event somewhere in the cluster. Kept for a limited time.',
  {
    metadata: required(metadata),
    involvedObject: required(embedded(objectReference, 'Object it happened to.')),
    reason: text('One word for what happened, for programs.'),
    message: text('Explanation for people.'),
    source: embedded(eventSource, 'Who reports it.'),
    firstTimestamp: always(time('When it first happened.')),
    lastTimestamp: always(time('When it last happened.')),
    count: int32('How often it happened.'),
    type: text('Normal or Warning.'),
    eventTime: always(microTime('When it first happened, to the microsecond.')),
    series: optionalStruct(coreEventSeries, 'How often it happened, if it keeps happening.'),
    action: text('What was done, or failed to be done.'),
    related: optionalStruct(objectReference, 'A second object it concerns.'),
    reportingComponent: always(text('Controller that reports it.')),
    reportingInstance: always(text('Instance of that controller.')),
  },
);

export const eventsEvent: StructSchema = kindStruct(
  `${EVENTS}.Event`,
  { group: 'events.k8s.io', version: 'v1', kind: 'Event' },
  'Event is a report of an event somewhere in the cluster, in the newer form. Kept for a limited time.',
  {
    metadata,
    eventTime: required(microTime('When it first happened, to the microsecond.')),
    series: optionalStruct(eventsEventSeries, 'How often it happened, if it keeps happening.'),
    reportingController: text('Controller that reports it.'),
    reportingInstance: text('Instance of that controller.'),
    action: text('What was done, or failed to be done.'),
    reason: text('One word for what happened, for programs.'),
    regarding: embedded(objectReference, 'Object it happened to.'),
    related: optionalStruct(objectReference, 'A second object it concerns.'),
    note: text('Explanation for people.'),
    type: text('Normal or Warning.'),
    deprecatedSource: embedded(eventSource, 'Who reports it, in the older form.'),
    deprecatedFirstTimestamp: always(time('When it first happened, in the older form.')),
    deprecatedLastTimestamp: always(time('When it last happened, in the older form.')),
    deprecatedCount: int32('How often it happened, in the older form.'),
  },
);
