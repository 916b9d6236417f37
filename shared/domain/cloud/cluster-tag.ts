/**
 * Tag key by which a resource in AWS says which cluster it belongs to; its value is the cluster's id. Our permission to
 * detach a volume asks for it.
 */
export const CLUSTER_TAG = 'nodekeeper.dev/cluster';
