/** Pods deleted because of a NoExecute taint. Upstream's name. */
export const POD_DELETIONS = 'taint_eviction_controller_pod_deletions_total';
/** Terminating pods removed from silent nodes that have stopped them (offline-stop.ts). Absent: none. */
export const POD_REMOVALS = 'taint_eviction_controller_pod_removals_total';
