/** Metrics of every function that ticks. */
import { type AlarmManifest, largest } from './alarm-manifest.ts';

/**
 * A wake-up may be this late. Seconds: the oldest event that Lambda delivers (cdk/lib/tick.ts), which is also the
 * precision of EventBridge Scheduler. Source: EventBridge Scheduler User Guide, "Schedule types".
 */
export const SCHEDULER_PRECISION_SECONDS = 60;

/** Time from the start of a slot to its tick. Twice per minute, from evictor once per minute. Seconds. */
export const TICK_AGE = 'tick_age_seconds';
/** Ticks that ended with an error, in any function; absent: none. */
export const FAILED_TICKS = 'failed_ticks';
/** Dimension of what all functions count in one metric: CloudWatch bills an alarm by the metrics that it evaluates. */
export const ALL_FUNCTIONS = { service: 'all' } as const;

/** The alarm of a controller that pages when it does not tick. */
export const ticksAlarm = (controller: string, rank: number, consequence: string): AlarmManifest => ({
  name: `${controller}-ticks`,
  rank,
  meaning: `${controller} does not run: ${consequence}.`,
  pages: true,
  metrics: { age: largest(TICK_AGE) },
  when: '>',
  threshold: SCHEDULER_PRECISION_SECONDS,
  datapoints: [2, 2],
  missing: 'breaching',
  missingBecause: 'the age is written in every minute, with or without work, so silence is the fault',
});
