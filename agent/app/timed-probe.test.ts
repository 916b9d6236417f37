import { expect, it } from 'vitest';
import { timedProbe } from './timed-probe.ts';

const TARGET = { node: 'n1', address: '192.0.2.1', port: 1 };

it.each([
  [true, 0, 0, 'answered'],
  [true, 60_000, 60_000, 'answered'],
  [false, 0, 0, 'silent'],
  [false, 700, 700, 'silent'],
  [false, 701, 0, 'void'],
  // The machine slept meanwhile: only one of its clocks ran.
  [false, 0, 701, 'void'],
])('a probe with the answer %s after %i ms, and %i ms of the machine, is %s', async (answer, tookMs, upMs, outcome) => {
  let [monotonicMs, uptimeMs] = [5_000, 90_000];
  const probe = async (target: typeof TARGET) => {
    expect(target).toBe(TARGET);
    monotonicMs += tookMs;
    uptimeMs += upMs;
    return answer;
  };
  const time = { monotonicMs: () => monotonicMs, uptimeMs: () => uptimeMs };
  expect(await timedProbe(probe, TARGET, time)).toBe(outcome);
});
