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

/** Objects that a controller could not write because they are too large, in any function; absent: none. */
export const OBJECTS_NOT_WRITTEN = 'objects_not_written_total';
/** Stream records given up because their work can never succeed, or did not for half an hour. Absent: none. */
export const RECORDS_GIVEN_UP = 'stream_records_given_up_total';
/** Works of stream records that failed and are done later, by a retry or by a tick; counted each time. Absent: none. */
export const RECORD_WORKS_POSTPONED = 'stream_record_works_postponed_total';
/** Events of the cluster that the event bus did not accept, after all tries; absent: none. */
export const EVENTS_NOT_SENT = 'events_not_sent_total';
