/**
 * Key of the tag that assigns an AWS resource to a cluster; its value is the cluster's id. Our permission to detach a
 * volume requires the tag.
 */
export const CLUSTER_TAG = 'nodekeeper.dev/cluster';
