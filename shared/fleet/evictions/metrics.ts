/** Pods deleted because of a NoExecute taint. Upstream's name. */
export const POD_DELETIONS = 'taint_eviction_controller_pod_deletions_total';
