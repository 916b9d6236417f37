/** Metrics of pod-gc, under upstream's names. */

/** Pods collected, by `reason` as upstream has it: terminated, out-of-service, orphaned, unscheduled. */
export const POD_GC_REMOVALS = 'pod_gc_collector_force_delete_pods_total';
export const POD_GC_ERRORS = 'pod_gc_collector_force_delete_pod_errors_total';
