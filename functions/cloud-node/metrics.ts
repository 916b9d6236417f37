/** Metrics of cloud-node. */

/** Nodes that cloud-node asks EC2 about: not Ready, or not initialised. */
export const CLOUD_WATCHED = 'cloud_watched_nodes';
/** Answers of EC2, by `state`: the state of the instance, `notFound`, or the failure (`throttled`, `foreign` …). */
export const CLOUD_ANSWERS = 'cloud_answers_total';
/** Answers without an instance state: throttled, denied, timed out …; absent when there are none. */
export const CLOUD_ANSWERS_FAILED = 'cloud_answers_failed_total';
export const CLOUD_NODE_DELETIONS = 'cloud_node_deletions_total';
