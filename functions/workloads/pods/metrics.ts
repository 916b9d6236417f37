/** Metrics of the pods of workloads, by kind of the owner. */

/** Pods that were created for an owner. */
export const PODS_CREATED = 'workload_pods_created_total';
/** Pods that were deleted because an owner has too many, or another template. */
export const PODS_DELETED = 'workload_pods_deleted_total';
/** Reductions and replacements that wait for the end of a hold, at each sync. */
export const REDUCTIONS_HELD = 'workload_held';
