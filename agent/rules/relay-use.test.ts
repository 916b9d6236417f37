import { expect, it } from 'vitest';
import { parsePolicy } from '../../shared/config/policy.ts';
import { collectMs, earliestStoredMs, isRelayUsable, limitedAttempt, relayWaitMs } from './relay-use.ts';

const isPermitted = (beatIntervalSeconds: number, nodeMonitorGracePeriodSeconds: number): boolean =>
  parsePolicy({
    beatIntervalSeconds,
    nodeMonitorGracePeriodSeconds,
    leaseDurationSeconds: 3 * beatIntervalSeconds,
  }).kind === 'ok';

it('a relay is used only if every permitted grace period is long enough for two ways that hang', () => {
  for (let intervalSeconds = 1; intervalSeconds <= 120; intervalSeconds += 1) {
    if (!isRelayUsable(1_000 * intervalSeconds)) continue;
    // Late answer, interval with jitter, wait for the relay, direct request that hangs, direct heartbeat.
    const needed = 2.8 + 1.04 * intervalSeconds + 5 + 3 + 1;
    for (let graceSeconds = 1; graceSeconds < needed; graceSeconds += 1) {
      expect(isPermitted(intervalSeconds, graceSeconds), `${intervalSeconds} ${graceSeconds}`).toBe(false);
    }
  }
});

it('a relay is used with the default interval and longer ones, and with none below', () => {
  expect([10_000, 12_000, 60_000, 3_600_000].map(isRelayUsable)).toEqual([true, true, true, true]);
  expect([9_999, 9_000, 5_000, 2_000, 1_000].map(isRelayUsable)).toEqual(new Array(5).fill(false));
});

it('a heartbeat waits for the relay until a direct one would be too late, or is sent directly at once', () => {
  const waits = [0, 10_400, 10_401, 11_500, 11_500.1].map((silentMs) => relayWaitMs(silentMs, 10_000));
  expect(waits).toEqual([2_600, 2_600, 2_599, 1_500, undefined]);
  expect([62_400, 65_200].map((silentMs) => relayWaitMs(silentMs, 60_000))).toEqual([5_000, 5_000]);
  expect(relayWaitMs(Number.POSITIVE_INFINITY, 3_600_000)).toBeUndefined();
});

it('a relay answers in time, and the next heartbeat can wait for it, too', () => {
  expect([5_000, 2_600, 1_900, 1_500].map((waitMs) => collectMs(waitMs, 10_000))).toEqual([1_000, 1_000, 900, 500]);
  expect([10_000, 12_000, 20_000, 60_000].map((each) => collectMs(5_000, each))).toEqual([1_000, 1_000, 1_600, 2_000]);
});

it('a direct attempt ends while another one is in time; one that is too late for that keeps its limit', () => {
  const limitAfter = (silentMs: number, intervalMs: number): number | undefined =>
    limitedAttempt(
      { method: 'PUT', path: '/', timeoutMs: 10_000, heartbeat: { intervalMs, storedAtMs: 50_000 } },
      50_000 + silentMs,
    ).timeoutMs;
  expect([0, 10_400, 18_200, 18_201, 19_500].map((silentMs) => limitAfter(silentMs, 10_000))).toEqual([
    10_000, 10_000, 3_000, 10_000, 10_000,
  ]);
  expect(limitAfter(31_200, 30_000)).toBe(10_000);
});

it('requests that are no heartbeat, and the first heartbeat, keep their limit', () => {
  const read = { method: 'GET', path: '/', timeoutMs: 10_000 } as const;
  expect(limitedAttempt(read, 0)).toBe(read);
  const first = { ...read, heartbeat: { intervalMs: 1_000, storedAtMs: undefined } };
  expect(limitedAttempt(first, 0)).toBe(first);
});

it('a relayed heartbeat was stored within the time limit of its batch before the answer', () => {
  const beat = { fromMs: 1_000, answeredAtMs: 5_000 };
  expect(earliestStoredMs({ ...beat, isRelayed: false })).toBe(1_000);
  expect(earliestStoredMs({ ...beat, isRelayed: true })).toBe(2_200);
  expect(earliestStoredMs({ ...beat, answeredAtMs: 1_100, isRelayed: true })).toBe(1_000);
});
