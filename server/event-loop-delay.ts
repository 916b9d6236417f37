import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Reading } from './process-metrics.ts';

export type DelayHistogram = ReturnType<typeof monitorEventLoopDelay>;

/** Milliseconds between two samples. Each wakes the process, also at rest: 100 per second cost 5 ms of CPU. */
const RESOLUTION_MS = 20;

/**
 * The delay in a value of `monitorEventLoopDelay`, in seconds. Its samples are the times between two calls of a timer,
 * so an idle loop shows the interval of the timer (github.com/nodejs/node/issues/34661).
 */
export const eventLoopDelaySeconds = (sampledNanoseconds: number, resolutionMs: number): number =>
  Math.max(0, sampledNanoseconds / 1e9 - resolutionMs / 1_000);

/**
 * The delay of this process in its metrics, since the last time that somebody read them. A stall is one sample, however
 * long it was, which a percentile does not show: so the longest delay is there as well.
 */
export function eventLoopDelayReadings(
  histogram: Pick<DelayHistogram, 'percentile' | 'max' | 'reset'>,
): readonly Reading[] {
  let longestSeconds = 0;
  return [
    {
      name: 'nodekeeper_event_loop_delay_seconds',
      help: 'Delay of the event loop, 99th percentile since the last reading.',
      type: 'gauge',
      read() {
        const seconds = eventLoopDelaySeconds(histogram.percentile(99), RESOLUTION_MS);
        longestSeconds = eventLoopDelaySeconds(histogram.max, RESOLUTION_MS);
        histogram.reset();
        return seconds;
      },
    },
    {
      name: 'nodekeeper_event_loop_delay_max_seconds',
      help: 'Longest delay of the event loop since the last reading.',
      type: 'gauge',
      read: () => longestSeconds,
    },
  ];
}

/** Measures from now on, until it is disabled. */
export function startEventLoopDelay(): DelayHistogram {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  return histogram;
}
