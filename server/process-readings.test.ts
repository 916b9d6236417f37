import { expect, it } from 'vitest';
import { startEventLoopDelay } from './event-loop-delay.ts';
import { processReadings } from './process-readings.ts';

it('shows every counter of the listener', () => {
  const delay = startEventLoopDelay();
  delay.disable();
  const counters = { requests: 3, serverErrors: 2, refusedBodies: 1, cutAnswers: 6 };
  const readings = processReadings({ delay, listener: { connections: () => 4, counters }, heldWatches: () => 5 });
  const values = new Map(readings.map(({ name, read }) => [name, read()]));
  expect(values.get('nodekeeper_requests_total')).toBe(3);
  expect(values.get('nodekeeper_server_errors_total')).toBe(2);
  expect(values.get('nodekeeper_refused_bodies_total')).toBe(1);
  expect(values.get('nodekeeper_cut_answers_total')).toBe(6);
});
