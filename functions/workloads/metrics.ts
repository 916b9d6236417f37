/** Metrics of the function that runs the workload controllers. Those of pods are by kind of the owner. */

/** Workloads that only the sweep found to need a sync. */
export const SWEPT_WORKLOADS = 'workload_swept_total';
/** Seconds for which some workload has had too few available pods, the longest; absent while none has. */
export const LONGEST_SHORTAGE = 'workload_shortage_seconds';

/** Pods that were created for an owner. */
export const PODS_CREATED = 'workload_pods_created_total';
/** Pods that were deleted because an owner has too many, or another template. */
export const PODS_DELETED = 'workload_pods_deleted_total';
/** Reductions and replacements that wait for the end of a hold, at each sync. */
export const REDUCTIONS_HELD = 'workload_held';
