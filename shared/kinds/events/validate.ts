/**
 * Event (pkg/apis/core/validation/events.go). What is validated depends on the API of the request, not only on the
 * event: events.k8s.io/v1 needs the newer form, and its updates change the series only. v1 accepts both forms, and
 * checks an event with eventTime, which is of the newer form, for its reporter, its action and the length of its texts.
 */

import { immutable, invalidValue, required, sameJson } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import {
  byteLength,
  pathSegmentName,
  qualifiedNameErrors,
  subdomainName,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import type { KubeEvent } from '../types.ts';
import { EVENTS_GROUP } from './resource.ts';

/** Bytes. */
const SHORT_TEXT_MAX = 128;
const NOTE_MAX = 1_024;

function validateHome(event: KubeEvent): Cause[] {
  const about = event.involvedObject?.namespace ?? '';
  const home = event.metadata.namespace ?? '';
  const isNewForm = typeof event.eventTime === 'string';
  const isClusterHome = home === 'default' || (isNewForm && home === 'kube-system');
  const isHome = about === '' ? isClusterHome : isNewForm || about === home;
  return isHome ? [] : [invalidValue('involvedObject.namespace', about, 'does not match event.namespace')];
}

function validateText(field: string, text: string, bytesMax: number): Cause[] {
  if (text === '') return [required(field)];
  return byteLength(text) > bytesMax ? [invalidValue(field, '', `can have at most ${bytesMax} characters`)] : [];
}

function validateNewForm(event: KubeEvent, group: string): Cause[] {
  const { reportingComponent: reporter = '', reportingInstance = '', action = '', reason = '', message = '' } = event;
  const field = group === EVENTS_GROUP ? 'reportingController' : 'reportingComponent';
  return [
    ...(reporter === '' ? [required(field)] : []),
    ...qualifiedNameErrors(reporter).map((error) => invalidValue(field, reporter, error)),
    ...validateText('reportingInstance', reportingInstance, SHORT_TEXT_MAX),
    ...validateText('action', action, SHORT_TEXT_MAX),
    ...validateText('reason', reason, SHORT_TEXT_MAX),
    ...(message === '' ? [] : validateText('message', message, NOTE_MAX)),
  ];
}

function validateSeries({ series }: KubeEvent): Cause[] {
  if (series === undefined || series === null) return [];
  const causes: Cause[] = [];
  if ((series.count ?? 0) < 2) causes.push(invalidValue('series.count', '', 'should be at least 2'));
  if (typeof series.lastObservedTime !== 'string') causes.push(required('series.lastObservedTime'));
  return causes;
}

/** Fields of the older form. */
const UNSET = ['firstTimestamp', 'lastTimestamp', 'count'] as const;

function validateStrictly(event: KubeEvent): Cause[] {
  const causes = validateSeries(event);
  const { type = '', source = {} } = event;
  if (typeof event.eventTime !== 'string') causes.push(required('eventTime'));
  if (type !== 'Normal' && type !== 'Warning') causes.push(invalidValue('type', '', `has invalid value: ${type}`));
  for (const field of UNSET) {
    if ((event[field] ?? undefined) !== undefined) causes.push(invalidValue(field, '', 'needs to be unset'));
  }
  if (Object.keys(source).length > 0) causes.push(invalidValue('source', '', 'needs to be unset'));
  return causes;
}

/** Fields that an update through events.k8s.io/v1 may not change, by their name in the causes. */
const FIXED = {
  involvedObject: 'involvedObject',
  reason: 'reason',
  message: 'message',
  source: 'source',
  firstTimestamp: 'firstTimestamp',
  lastTimestamp: 'lastTimestamp',
  count: 'count',
  type: 'type',
  eventTime: 'eventTime',
  action: 'action',
  related: 'related',
  reportingController: 'reportingComponent',
  reportingInstance: 'reportingInstance',
} as const;

/** @param group API group of the request, '' for v1 */
export function validateEvent(event: KubeEvent, old: KubeEvent | undefined, group: string): Cause[] {
  const isStrict = group === EVENTS_GROUP;
  const causes = [
    ...validateObjectMetadata(event, old, { namespaced: true, name: isStrict ? subdomainName : pathSegmentName }),
    ...validateHome(event),
    ...(typeof event.eventTime === 'string' ? validateNewForm(event, group) : []),
  ];
  if (!isStrict) return causes;
  if (old === undefined) return [...causes, ...validateStrictly(event)];
  if (!sameJson(event.series, old.series)) causes.push(...validateSeries(event));
  for (const [name, field] of Object.entries(FIXED)) causes.push(...immutable(name, event[field], old[field]));
  return causes;
}
