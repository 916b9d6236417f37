import { expect, it } from 'vitest';
import { parsePolicy } from '../../shared/config/policy.ts';
import { isRelayUsable, isTimeForRelay } from './relay-use.ts';

const isPermitted = (beatIntervalSeconds: number, nodeMonitorGracePeriodSeconds: number): boolean =>
  parsePolicy({
    beatIntervalSeconds,
    nodeMonitorGracePeriodSeconds,
    leaseDurationSeconds: 3 * beatIntervalSeconds,
  }).kind === 'ok';

it('a relay is used only if every permitted grace period is long enough for one that hangs', () => {
  for (let intervalSeconds = 1; intervalSeconds <= 120; intervalSeconds += 1) {
    if (!isRelayUsable(1_000 * intervalSeconds)) continue;
    // Late answer, interval with jitter, 5 s of waiting, direct heartbeat.
    const needed = 2.8 + 1.04 * intervalSeconds + 5 + 1;
    for (let graceSeconds = 1; graceSeconds < needed; graceSeconds += 1) {
      expect(isPermitted(intervalSeconds, graceSeconds), `${intervalSeconds} ${graceSeconds}`).toBe(false);
    }
  }
});

it('a relay is used with the default interval and longer ones, and with none below 9.2 s', () => {
  expect([10_000, 9_200, 60_000, 3_600_000].map(isRelayUsable)).toEqual([true, true, true, true]);
  expect([9_100, 9_000, 5_000, 2_000, 1_000].map(isRelayUsable)).toEqual(new Array(5).fill(false));
});

it('a heartbeat is sent through the relay until a direct one after the wait would be too late', () => {
  expect([0, 14_000, 14_001].map((silentMs) => isTimeForRelay(silentMs, 10_000))).toEqual([true, true, false]);
  expect(isTimeForRelay(Number.POSITIVE_INFINITY, 3_600_000)).toBe(false);
});
