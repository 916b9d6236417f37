import { isLeaseBatchPath } from '../shared/fleet/nodes/lease-batch.ts';

const LEASE_PATH = /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/kube-node-lease\/leases\/[^/]+$/;

/** PUT and PATCH of one Lease of a node, and a relay's batch of them: the heartbeat's. Everything else is the API's. */
export const isRenewal = ({ method, path }: { readonly method: string; readonly path: string }): boolean =>
  ((method === 'PUT' || method === 'PATCH') && LEASE_PATH.test(path)) || (method === 'POST' && isLeaseBatchPath(path));
