import { expect, it } from 'vitest';
import { memoryRuntime } from '../../test/support/memory-runtime.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import { RuntimeHealth } from './runtime-health.ts';

function world() {
  const time = new SteppedTime(1_700_000_000_000);
  const now: { why: string; fault?: Error; complaint?: string } = { why: '' };
  let polls = 0;
  const events: string[] = [];
  const health = new RuntimeHealth({
    runtime: {
      ...memoryRuntime(time),
      async health() {
        polls += 1;
        if (now.fault !== undefined) throw now.fault;
        return now.why === '' ? { kind: 'ready' } : { kind: 'notReady', reason: now.why };
      },
      complaint: () => now.complaint,
    },
    time,
    recordEvent: ({ type, reason, message }) => events.push(`${type} ${reason}: ${message}`),
  });
  return { time, now, events, health, polls: () => polls };
}

it('reports no readiness before the runtime does, and then what it reports', async () => {
  const { health, now, events } = world();
  expect(health.notReady()).toBe('the container runtime has not reported yet');
  await health.poll();
  expect(health.notReady()).toBeUndefined();
  now.why = 'no disk';
  await health.poll();
  expect(health.notReady()).toBe('no disk');
  now.fault = new Error('no answer');
  await health.poll();
  expect(health.notReady()).toBe('Error: no answer');
  expect(events).toEqual([]);
});

it('records an event when the state cannot be written, and when it can again', async () => {
  const { health, now, events } = world();
  now.complaint = 'full';
  await health.poll();
  await health.poll();
  expect(health.stateComplaint()).toBe('full');
  now.complaint = 'read-only';
  await health.poll();
  delete now.complaint;
  await health.poll();
  await health.poll();
  expect(health.stateComplaint()).toBeUndefined();
  expect(events).toEqual([
    'Warning StateNotWritten: full',
    'Warning StateNotWritten: read-only',
    'Normal StateWritten: The state of pods is written to the disk again',
  ]);
});

it('polls every ten seconds until it is stopped', async () => {
  const { health, time, polls } = world();
  const stop = new AbortController();
  const running = health.run(stop.signal);
  await time.pass(9_999);
  expect(polls()).toBe(0);
  await time.pass(1);
  await time.pass(10_000);
  expect(polls()).toBe(2);
  stop.abort();
  await running;
  await time.pass(60_000);
  expect(polls()).toBe(2);
});
