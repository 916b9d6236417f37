/**
 * Event (pkg/apis/core/validation/events.go). An event of the older form must only be in the namespace of its subject.
 * One of the newer form (events.k8s.io/v1, recognised by eventTime) also needs a reporter, an action and bounded texts.
 */
import type { Cause } from '../status.ts';
import type { KubeEvent } from '../types.ts';
import { immutable, invalidValue, required, tooLong } from './causes.ts';
import { validateObjectMetadata } from './metadata.ts';
import { byteLength, pathSegmentName, qualifiedNameErrors } from './names.ts';

const REASON_MAX = 128;
const ACTION_MAX = 128;
const REPORTER_MAX = 128;
const NOTE_MAX = 1_024;

/** Namespaces for events of cluster-scoped objects. */
const HOMES_OF_CLUSTER_EVENTS = ['default', 'kube-system'];

function validateHome(event: KubeEvent): Cause[] {
  const about = event.involvedObject?.namespace ?? '';
  const home = event.metadata.namespace ?? '';
  if (about === '') {
    return HOMES_OF_CLUSTER_EVENTS.includes(home)
      ? []
      : [invalidValue('involvedObject.namespace', about, 'does not match event.namespace')];
  }
  return about === home ? [] : [invalidValue('involvedObject.namespace', about, 'does not match event.namespace')];
}

function validateNewForm(event: KubeEvent): Cause[] {
  const causes: Cause[] = [];
  const { reportingComponent: reporter = '', reportingInstance: instance = '' } = event;
  const { action = '', reason = '', message = '', type } = event;
  if (reporter === '') causes.push(required('reportingController'));
  for (const error of reporter === '' ? [] : qualifiedNameErrors(reporter)) {
    causes.push(invalidValue('reportingController', reporter, error));
  }
  if (instance === '') causes.push(required('reportingInstance'));
  if (byteLength(instance) > REPORTER_MAX) causes.push(tooLong('reportingInstance', REPORTER_MAX));
  if (action === '') causes.push(required('action'));
  if (byteLength(action) > ACTION_MAX) causes.push(tooLong('action', ACTION_MAX));
  if (reason === '') causes.push(required('reason'));
  if (byteLength(reason) > REASON_MAX) causes.push(tooLong('reason', REASON_MAX));
  if (byteLength(message) > NOTE_MAX) causes.push(tooLong('message', NOTE_MAX));
  if (type !== 'Normal' && type !== 'Warning') {
    causes.push(invalidValue('type', type, 'has invalid value: must be Normal or Warning'));
  }
  return causes;
}

/** Fields of an event of the newer form that an update may not change. */
const FIXED = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingComponent',
  'reportingInstance',
] as const;

export function validateEvent(event: KubeEvent, old: KubeEvent | undefined): Cause[] {
  const causes = [
    ...validateObjectMetadata(event, old, { namespaced: true, name: pathSegmentName }),
    ...validateHome(event),
  ];
  if (!event.eventTime) return causes;
  if (old === undefined) return [...causes, ...validateNewForm(event)];
  return [...causes, ...FIXED.flatMap((field) => immutable(field, event[field], old[field]))];
}
