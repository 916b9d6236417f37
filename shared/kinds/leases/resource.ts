import { storedResource } from '../stored-resource.ts';

export const LEASE_GROUP = 'coordination.k8s.io';

export const LEASES = storedResource({
  group: LEASE_GROUP,
  resource: 'leases',
  kind: 'Lease',
  scope: 'namespaced',
});
