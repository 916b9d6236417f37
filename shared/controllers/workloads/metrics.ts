/** Metrics of the function that runs the workload controllers. */

/** Workloads that only the sweep found to need a sync. */
export const SWEPT_WORKLOADS = 'workload_swept_total';
