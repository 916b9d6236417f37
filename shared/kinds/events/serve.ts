/**
 * Events. They are stored as v1 and served as v1 and as events.k8s.io/v1, which has other names for the same fields
 * (pkg/apis/events/v1/conversion.go).
 */

import { ageSince, formatAge } from '../../kubernetes/age.ts';
import { nameColumn, textColumn, UNKNOWN } from '../../kubernetes/columns.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import type { Column, ResourceDescriptor } from '../descriptor.ts';
import type { KubeEvent, KubeObject } from '../types.ts';
import { prepareEvent } from './defaults.ts';
import { componentOf, EVENTS, EVENTS_GROUP, EVENTS_V1 } from './resource.ts';
import { validateEvent } from './validate.ts';

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

export const events: ResourceDescriptor = {
  ...EVENTS,
  singular: 'event',
  listKind: 'EventList',
  shortNames: ['ev'],
  categories: [],
  subresources: [],
  columns,
  row,
  unconditionalUpdate: true,
  createOnUpdate: true,
  ...prepareEvent,
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
  ...EVENTS_V1,
  servedFrom: {
    group: '',
    resource: 'events',
    toServed: (stored) => renamed(stored, RENAMED, `${EVENTS_GROUP}/v1`),
    toStored: (served) => renamed(served, ORIGINAL, 'v1'),
  },
};
