import { expect, it } from 'vitest';
import { disruptedStatus, terminatedStatus } from './shutdown-status.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const target = (more: object = {}) => ({
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'TerminationByKubelet',
  message: 'why',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  ...more,
});
const ready = { type: 'Ready', status: 'True' };

it('a pod that its node terminates is marked, in the place of an earlier mark', () => {
  expect(disruptedStatus({ phase: 'Running' }, 'why', NOW_MS)).toEqual({ phase: 'Running', conditions: [target()] });
  expect(disruptedStatus({ conditions: [ready] }, 'why', NOW_MS)['conditions']).toEqual([ready, target()]);
  const earlier = { type: 'DisruptionTarget', status: 'False', lastTransitionTime: '2025-01-01T00:00:00Z', kept: 1 };
  expect(disruptedStatus({ conditions: [earlier, ready] }, 'why', NOW_MS)['conditions']).toEqual([
    target({ kept: 1 }),
    ready,
  ]);
});

it('the time of a mark that was there stays', () => {
  const before = { type: 'DisruptionTarget', status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z', reason: 'x' };
  expect(disruptedStatus({ conditions: [ready, before] }, 'why', NOW_MS)['conditions']).toEqual([
    ready,
    target({ lastTransitionTime: '2025-01-01T00:00:00Z' }),
  ]);
});

it('a pod that a shutdown terminates has failed, unless it had succeeded', () => {
  const phases = ['Running', 'Pending', 'Failed', 'Succeeded'].map((phase) => terminatedStatus({ phase }, NOW_MS));
  expect(phases.map(({ phase, reason }) => [phase, reason])).toEqual([
    ['Failed', 'Terminated'],
    ['Failed', 'Terminated'],
    ['Failed', 'Terminated'],
    ['Succeeded', 'Terminated'],
  ]);
  const [{ message, conditions } = {}] = phases;
  expect(message).toBe('Pod was terminated in response to imminent node shutdown.');
  expect(conditions).toEqual([target({ message })]);
});
