import { describe, expect, it } from 'vitest';
import { answered, refused, timedOut } from '../../test/support/agent-api.ts';
import { eventName, eventOutcome } from './event-request.ts';

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
});
