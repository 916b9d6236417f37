/**
 * Events. They are stored as v1 and served as v1 and as events.k8s.io/v1, which has other names for the same fields
 * (pkg/apis/events/v1/conversion.go).
 */
import { ageSince, formatAge } from '../../kubernetes/age.ts';
import { nameColumn, textColumn, UNKNOWN } from '../../kubernetes/columns.ts';
import { freshMetadata, inheritMetadata, typed, withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { canonicalMicroTime, canonicalTime, parseTimeMs } from '../../kubernetes/time.ts';
import type { Column, PrepareContext, ResourceDescriptor, Verb } from '../descriptor.ts';
import type { KubeEvent, KubeObject } from '../types.ts';
import { EVENTS_GROUP, validateEvent } from './validate.ts';

const VERBS: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

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

const prepareForCreate = (object: KubeObject, _context: PrepareContext): KubeObject =>
  storedForm({ ...object, metadata: freshMetadata(object.metadata) });

const prepareForUpdate = (next: KubeObject, old: KubeObject): KubeObject =>
  storedForm({ ...next, metadata: inheritMetadata(next.metadata, old.metadata) });

const firstTimeOf = ({ firstTimestamp, eventTime }: KubeEvent): string | undefined =>
  firstTimestamp ?? eventTime ?? undefined;

function lastSeen(event: KubeEvent, nowMs: number): string {
  const { count, lastObservedTime } = event.series ?? {};
  if (typeof lastObservedTime === 'string' && count !== undefined) return ageSince(lastObservedTime, nowMs);
  return ageSince(event.lastTimestamp ?? firstTimeOf(event), nowMs);
}

function firstSeen(event: KubeEvent, nowMs: number): string {
  const firstMs = parseTimeMs(firstTimeOf(event));
  return firstMs === undefined ? UNKNOWN : formatAge(nowMs - firstMs);
}

const componentOf = ({ source, reportingComponent = '' }: KubeEvent): string => source?.component || reportingComponent;

function sourceCell(event: KubeEvent): string {
  const component = componentOf(event);
  const host = event.source?.host || (event.reportingInstance ?? '');
  return host === '' ? component : `${component}, ${host}`;
}

const countCell = ({ series, count }: KubeEvent): number => (series?.count ?? count) || 1;

const columns: readonly Column[] = [
  textColumn('Last Seen', 'Time since it last happened.'),
  textColumn('Type', 'Normal or Warning.'),
  textColumn('Reason', 'What happened, in one word.'),
  textColumn('Object', 'What it happened to.'),
  textColumn('Subobject', 'Which part of that object.', 1),
  textColumn('Source', 'Who reports it, and where that one runs.', 1),
  textColumn('Message', 'What happened, in a sentence.'),
  textColumn('First Seen', 'Time since it first happened.', 1),
  textColumn('Count', 'How often it happened.', 1),
  { ...nameColumn, priority: 1 },
];

function row(event: KubeEvent, nowMs: number): unknown[] {
  const { name = '', kind: involvedKind = '', fieldPath = '' } = event.involvedObject ?? {};
  const kind = involvedKind.toLowerCase();
  return [
    lastSeen(event, nowMs),
    event.type ?? '',
    event.reason ?? '',
    name === '' ? kind : `${kind}/${name}`,
    fieldPath,
    sourceCell(event),
    (event.message ?? '').trim(),
    firstSeen(event, nowMs),
    countCell(event),
    event.metadata.name ?? '',
  ];
}

type FieldReader = (event: KubeEvent) => string;

const metadataFields: Readonly<Record<string, FieldReader>> = {
  'metadata.name': (event) => event.metadata.name ?? '',
  'metadata.namespace': (event) => event.metadata.namespace ?? '',
};

const REFERENCE_FIELDS = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'] as const;

const objectFields = (prefix: string): Readonly<Record<string, FieldReader>> =>
  Object.fromEntries(
    REFERENCE_FIELDS.map((field) => [`${prefix}.${field}`, (event: KubeEvent) => event.involvedObject?.[field] ?? '']),
  );

const commonFields: Readonly<Record<string, FieldReader>> = {
  ...metadataFields,
  reason: (event) => event.reason ?? '',
  type: (event) => event.type ?? '',
};

export const events: ResourceDescriptor = {
  group: '',
  version: 'v1',
  resource: 'events',
  singular: 'event',
  kind: 'Event',
  listKind: 'EventList',
  shortNames: ['ev'],
  categories: [],
  namespaced: true,
  verbs: VERBS,
  subresources: [],
  shards: 4,
  columns,
  row,
  selectableFields: {
    ...commonFields,
    ...objectFields('involvedObject'),
    reportingComponent: componentOf,
    source: componentOf,
  },
  unconditionalUpdate: true,
  createOnUpdate: true,
  hasGeneration: false,
  prepareForCreate,
  prepareForUpdate,
  validate: (object, { old, group }) => validateEvent(object, old, group ?? ''),
};

/** Field names of events.k8s.io/v1, by the field name of v1. */
const RENAMED: Readonly<Record<string, string>> = {
  involvedObject: 'regarding',
  message: 'note',
  reportingComponent: 'reportingController',
  source: 'deprecatedSource',
  firstTimestamp: 'deprecatedFirstTimestamp',
  lastTimestamp: 'deprecatedLastTimestamp',
  count: 'deprecatedCount',
};
const ORIGINAL = Object.fromEntries(Object.entries(RENAMED).map(([older, newer]) => [newer, older]));

function renamed(event: KubeObject, names: Readonly<Record<string, string>>, apiVersion: string): KubeObject {
  const { apiVersion: _apiVersion, kind: _kind, metadata, ...body } = event;
  const fields = Object.entries(body).map(([key, value]) => [names[key] ?? key, value]);
  return { apiVersion, kind: 'Event', metadata, ...Object.fromEntries(fields) };
}

/** The same events as events.k8s.io/v1. The field selectors and table rows read the stored form (v1). */
export const eventsV1: ResourceDescriptor = {
  ...events,
  group: EVENTS_GROUP,
  selectableFields: {
    ...commonFields,
    ...objectFields('regarding'),
    reportingController: componentOf,
  },
  servedFrom: {
    group: '',
    resource: 'events',
    toServed: (stored) => renamed(stored, RENAMED, `${EVENTS_GROUP}/v1`),
    toStored: (served) => renamed(served, ORIGINAL, 'v1'),
  },
};
