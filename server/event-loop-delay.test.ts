import { expect, it } from 'vitest';
import { eventLoopDelayReadings, eventLoopDelaySeconds } from './event-loop-delay.ts';

it('does not count the interval between two samples as delay', () => {
  expect(eventLoopDelaySeconds(10_200_000, 10)).toBeCloseTo(0.0002);
  expect(eventLoopDelaySeconds(31_000_000, 10)).toBeCloseTo(0.021);
  // The first percentile of a histogram without samples, and a timer that was early.
  expect(eventLoopDelaySeconds(0, 10)).toBe(0);
  expect(eventLoopDelaySeconds(9_800_000, 10)).toBe(0);
});

it('shows a stall that the percentile does not, and begins anew at each reading', () => {
  let samples: readonly number[] = [...Array.from({ length: 500 }, () => 22_000_000), 1_020_000_000];
  const readings = eventLoopDelayReadings({
    percentile: () => samples[Math.floor(samples.length * 0.99)] ?? 0,
    get max() {
      return Math.max(0, ...samples);
    },
    reset() {
      samples = [];
    },
  });
  const read = () => readings.map((each) => each.read());
  expect(read()).toEqual([expect.closeTo(0.002), expect.closeTo(1)]);
  expect(read()).toEqual([0, 0]);
});
