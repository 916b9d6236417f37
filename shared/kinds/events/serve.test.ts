import { describe, expect, it } from 'vitest';
import { parseFieldSelector } from '../../kubernetes/selectors.ts';
import { causeText } from '../../kubernetes/status.ts';
import type { KubeObject } from '../types.ts';
import { events, eventsV1 } from './serve.ts';

const nowMs = Date.UTC(2001, 1, 3, 4, 5, 51);
const given = {
  metadata: { name: 'e-1', namespace: 'default' },
  involvedObject: { kind: 'Node', name: 'kw-1', uid: 'kw-1', apiVersion: 'v1' },
  reason: 'NodeReady',
  message: 'Node status is now: NodeReady',
  type: 'Normal',
  source: { component: 'kubelet', host: 'kw-1' },
  firstTimestamp: '2001-02-03T04:05:06Z',
  lastTimestamp: '2001-02-03T04:05:46Z',
  count: 1,
};
const stored = events.prepareForCreate(given, { nowMs });
const complaints = (event: KubeObject): string[] =>
  events.validate(events.prepareForCreate(event, { nowMs }), { operation: 'create', subresource: '' }).map(causeText);

describe('events', () => {
  it('are stored as an API server prints them', () => {
    expect(stored).toEqual({
      apiVersion: 'v1',
      kind: 'Event',
      ...given,
      eventTime: null,
      reportingComponent: '',
      reportingInstance: '',
    });
  });

  it('show the time, the reason and the object', () => {
    expect(events.row(stored, nowMs)).toEqual([
      '5s',
      'Normal',
      'NodeReady',
      'node/kw-1',
      '',
      'kubelet, kw-1',
      'Node status is now: NodeReady',
      '45s',
      1,
      'e-1',
    ]);
  });

  it('count from the series where there is one', () => {
    const series = { count: 7, lastObservedTime: '2001-02-03T04:05:41.000000Z' };
    const row = events.row({ ...stored, series }, nowMs);
    expect([row[0], row[8]]).toEqual(['10s', 7]);
  });

  it('show little of a sparse one', () => {
    const sparse = events.prepareForCreate(
      {
        metadata: { name: 'e-2', namespace: 'default' },
        involvedObject: { kind: 'Node', name: 'kw-1' },
        reason: 'Sparse',
      },
      { nowMs },
    );
    expect(events.row(sparse, nowMs)).toEqual([
      '<unknown>',
      '',
      'Sparse',
      'node/kw-1',
      '',
      '',
      '',
      '<unknown>',
      1,
      'e-2',
    ]);
  });

  it('lie in the namespace of what they are about', () => {
    expect(complaints({ ...given, involvedObject: { kind: 'Pod', name: 'p-1', namespace: 'kube-system' } })).toEqual([
      'involvedObject.namespace: Invalid value: "kube-system": does not match event.namespace',
    ]);
    expect(complaints(given)).toEqual([]);
    expect(complaints({ ...given, metadata: { name: 'e', namespace: 'elsewhere' } })).toHaveLength(1);
  });

  it('of the newer form name reporter and action', () => {
    const event = { ...given, reportingComponent: 'a b', eventTime: '2001-02-03T04:05:06.000000Z' };
    expect(complaints(event)).toEqual([
      expect.stringMatching('^reportingComponent: Invalid value: "a b": name part must consist of'),
      'reportingInstance: Required value',
      'action: Required value',
    ]);
  });

  it.each([
    ['involvedObject.kind=Node,type=Normal', true],
    ['involvedObject.uid=kw-1,involvedObject.namespace=', true],
    ['source=kubelet', true],
    ['reason!=NodeReady', false],
  ])('are selected by %s: %s', (text, verdict) => {
    const selector = parseFieldSelector(text);
    if (selector.kind !== 'parsed') throw new Error(selector.message);
    expect(selector.matches((field) => events.selectableFields[field]?.(stored) ?? 'unknown field')).toBe(verdict);
  });

  it('have newer names in the newer group, and convert back to the same', () => {
    const served = eventsV1.servedFrom?.toServed(stored);
    expect(served).toMatchObject({
      apiVersion: 'events.k8s.io/v1',
      regarding: { name: 'kw-1' },
      note: 'Node status is now: NodeReady',
      deprecatedCount: 1,
      reportingController: '',
    });
    expect(eventsV1.servedFrom?.toStored(served ?? { metadata: {} })).toEqual(stored);
  });
});
