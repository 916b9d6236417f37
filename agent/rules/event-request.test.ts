import { describe, expect, it } from 'vitest';
import { answered, refused, timedOut } from '../../test/support/agent-api.ts';
import { eventName, eventOutcome, eventRequest, type RecordedEvent } from './event-request.ts';

describe('the answer to an event', () => {
  it.each([
    ['stored', 'a created event', answered(201), false],
    ['stored', 'an updated event', answered(200), true],
    ['stored', 'a create after a lost answer', refused(409, 'AlreadyExists'), false],
    ['expired', 'an update of a deleted event', refused(404, 'NotFound'), true],
    ['refused', 'a create in a namespace that does not exist', refused(404, 'NotFound'), false],
    ['refused', 'a conflicting update', refused(409, 'Conflict'), true],
    ['refused', 'a forbidden create', refused(403, 'Forbidden'), false],
    ['failed', 'no answer', timedOut, false],
    ['failed', 'an expired token', refused(401, 'Unauthorized'), false],
    ['failed', 'too many requests', refused(429, 'TooManyRequests'), false],
    ['failed', 'a fault of the server', refused(500, 'InternalError'), true],
  ])('means %s for %s', (outcome, _case, answer, isCreated) => {
    expect(eventOutcome(answer, { isCreated })).toBe(outcome);
  });
});

it('names two events of the same millisecond differently', () => {
  expect(eventName('web', 1, 0)).toBe('web.f4240');
  expect(eventName('web', 1, 1)).toBe('web.f4241');
  // The numbers begin again, and reach no other millisecond.
  expect(eventName('web', 1, 1_000_001)).toBe('web.f4241');
});

describe('the request for an event', () => {
  const recorded: RecordedEvent = {
    name: 'p.1',
    subject: { kind: 'Pod', namespace: 'a', name: 'p', uid: 'u' },
    event: { type: 'Warning', reason: 'Failed', message: 'it did not start' },
    ...{ firstAtMs: 0, lastAtMs: 60_000, count: 3, isCreated: false },
  };
  const series = { count: 3, lastTimestamp: '1970-01-01T00:01:00Z' };

  it('creates it in the namespace of its object', () => {
    expect(eventRequest(recorded, 'n1')).toEqual({
      method: 'POST',
      path: '/api/v1/namespaces/a/events',
      body: {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'p.1', namespace: 'a' },
        involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: 'a', name: 'p', uid: 'u' },
        ...recorded.event,
        source: { component: 'kubelet', host: 'n1' },
        reportingComponent: 'kubelet',
        reportingInstance: 'n1',
        firstTimestamp: '1970-01-01T00:00:00Z',
        ...series,
      },
    });
  });

  it('about a Node is in the default namespace', () => {
    const subject = { kind: 'Node', namespace: '', name: 'n1', uid: 'n1' } as const;
    const { path, body } = eventRequest({ ...recorded, subject }, 'n1');
    expect([path, body]).toEqual([
      '/api/v1/namespaces/default/events',
      expect.objectContaining({ metadata: { name: 'p.1', namespace: 'default' } }),
    ]);
  });

  it('counts one that the server has', () => {
    expect(eventRequest({ ...recorded, isCreated: true }, 'n1')).toEqual({
      method: 'PATCH',
      path: '/api/v1/namespaces/a/events/p.1',
      body: series,
      contentType: 'application/merge-patch+json',
    });
  });
});
