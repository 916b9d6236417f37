/** Metrics of the function that runs the workload controllers. */

/** Workloads that only the sweep found to need a sync. */
export const SWEPT_WORKLOADS = 'workload_swept_total';
/** Seconds for which some workload has had too few available pods, the longest; absent while none has. */
export const LONGEST_SHORTAGE = 'workload_shortage_seconds';
