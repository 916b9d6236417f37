import { storedResource } from '../stored-resource.ts';

export const LEASE_GROUP = 'coordination.k8s.io';
/** The namespace of the Leases that nodes renew. */
export const LEASE_NAMESPACE = 'kube-node-lease';

export const LEASES = storedResource({
  group: LEASE_GROUP,
  resource: 'leases',
  kind: 'Lease',
  scope: 'namespaced',
});
