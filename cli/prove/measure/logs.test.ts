import { expect, it } from 'vitest';
import type { AwsJson, Calls, Measuring } from '../calls.ts';
import { MEASURE_LOGS } from './logs.ts';

const probeOf = (name: string) => ({ functionName: name, logGroup: `${name}-logs` });
const report = (metrics: object, status = 'success') => ({
  message: JSON.stringify({ type: 'platform.report', record: { status, metrics } }),
});

/** A clock that passes with the pauses. */
function measuringWith(calls: Pick<Calls, 'json'> & Partial<Calls>): Measuring {
  let nowMs = 0;
  const pause = async (milliseconds: number): Promise<void> => {
    nowMs += milliseconds;
  };
  return {
    calls: { invoke: async () => undefined, nowMs: () => nowMs, pause, ...calls },
    cluster: { probes: { info: probeOf('info'), warn: probeOf('warn') } },
  } as unknown as Measuring;
}

it('reads empty pages to the last one, and lines in any form', async () => {
  const pages: Readonly<Record<string, AwsJson>> = {
    'info-logs': { events: [], nextToken: 'second' },
    second: {
      events: [
        { message: '{"message":{"message":"prove-line-info"}}' },
        { message: 'prove-line-warn' },
        { message: 'START RequestId: 1' },
        report({ durationMs: 1.5, billedDurationMs: 102, initDurationMs: 100 }),
        report({ durationMs: 3_000, billedDurationMs: 3_000 }, 'timeout'),
      ],
    },
    'warn-logs': { events: [{ message: 'prove-line-warn' }] },
  };
  const measuring = measuringWith({
    json: async (_service, _action, { logGroupName, nextToken }) => ({
      status: 200,
      body: pages[String(nextToken ?? logGroupName)] ?? {},
    }),
  });
  expect(await MEASURE_LOGS['lambda-log-level'](measuring)).toEqual({
    atInfo: ['info', 'warn', 'other', 'platform.report', 'platform.report of timeout'],
    atWarn: ['warn'],
    reports: [{ durationMs: 1.5, billedMs: 102, initMs: 100 }],
  });
});

it('invokes each function twice, the second time when the lines of the first one have arrived', async () => {
  const calls: string[] = [];
  let invocations = 0;
  const measuring = measuringWith({
    invoke: async (name) => {
      invocations += 1;
      calls.push(name);
      return undefined;
    },
    json: async (_service, _action, { logGroupName }) => {
      if (calls.at(-1) !== 'read') calls.push('read');
      const count = Math.floor(invocations / 2);
      const line =
        logGroupName === 'info-logs' ? report({ durationMs: 1, billedDurationMs: 1 }) : { message: 'prove-line-warn' };
      return { status: 200, body: { events: Array.from({ length: count }, () => line) } };
    },
  });
  await MEASURE_LOGS['lambda-billed-duration'](measuring);
  await MEASURE_LOGS['lambda-billed-init'](measuring);
  expect(calls).toEqual(['info', 'warn', 'read', 'info', 'warn', 'read']);
  expect(measuring.calls.nowMs()).toBe(2 * 2_000 + 10_000);
});

it.each([
  [{ invoke: async () => 'TooManyRequestsException: Rate Exceeded' }, 'a function cannot be invoked: TooMany'],
  [
    { json: async () => ({ status: 400, body: { __type: 'AccessDeniedException' } }) },
    'no log can be read: AccessDenied',
  ],
  [{ json: async () => ({ status: 200, body: { nextToken: 'again' } }) }, 'a log has more than 20 pages'],
])('ends when it is refused, or has no end', async (calls, message) => {
  const json = async () => ({ status: 200, body: {} });
  await expect(MEASURE_LOGS['lambda-log-level'](measuringWith({ json, ...calls }))).rejects.toThrow(message);
});

it('stops to wait for lines that do not arrive before the time of a fact is over', async () => {
  const measuring = measuringWith({ json: async () => ({ status: 200, body: {} }) });
  expect(await MEASURE_LOGS['lambda-log-level'](measuring)).toEqual({ atInfo: [], atWarn: [], reports: [] });
  expect(measuring.calls.nowMs()).toBeLessThan(120_000);
});
