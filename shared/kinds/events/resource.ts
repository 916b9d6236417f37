import { storedResource } from '../stored-resource.ts';
import type { KubeEvent } from '../types.ts';

export const EVENTS_GROUP = 'events.k8s.io';

type FieldReader = (event: KubeEvent) => string;

export const componentOf: FieldReader = ({ source, reportingComponent = '' }) =>
  source?.component || reportingComponent;

const REFERENCE_FIELDS = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'] as const;

/** The fields of the object that an event is about: v1 and events.k8s.io/v1 differ in the name before them. */
const objectFields = (prefix: string): Readonly<Record<string, FieldReader>> =>
  Object.fromEntries(
    REFERENCE_FIELDS.map((field) => [`${prefix}.${field}`, (event: KubeEvent) => event.involvedObject?.[field] ?? '']),
  );

/** Fields with the same names in both groups. */
const commonFields: Readonly<Record<string, FieldReader>> = {
  reason: (event) => event.reason ?? '',
  type: (event) => event.type ?? '',
};

export const EVENTS = storedResource({
  group: '',
  resource: 'events',
  kind: 'Event',
  scope: 'namespaced',
  shards: 4,
  // As upstream's --event-ttl.
  expiresAfterSeconds: 3_600,
  selectableFields: {
    ...commonFields,
    ...objectFields('involvedObject'),
    reportingComponent: componentOf,
    source: componentOf,
  },
  otherApiVersions: [`${EVENTS_GROUP}/v1`],
});

/** Selectors of events.k8s.io/v1 read the stored form too, under its own names. */
export const EVENTS_V1 = storedResource({
  group: EVENTS_GROUP,
  resource: 'events',
  kind: 'Event',
  scope: 'namespaced',
  shards: EVENTS.shards,
  selectableFields: {
    ...commonFields,
    ...objectFields('regarding'),
    reportingController: componentOf,
  },
});
