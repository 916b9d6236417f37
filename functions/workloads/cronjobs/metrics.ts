/** Metrics of the CronJob controller. */

/** From the due time to the creation of the Job. Milliseconds; absent while no Job is started. */
export const START_DELAY = 'cronjob_start_delay_ms';
