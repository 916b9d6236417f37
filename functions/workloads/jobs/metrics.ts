/** Metrics of the Job controller. */

/** Jobs that ended, by `reason` of their condition. */
export const JOBS_FINISHED = 'jobs_finished_total';
