import { IDENTITY_GROUP } from '../identities/resource.ts';
import { storedResource } from '../stored-resource.ts';

export const CLUSTER_STATUSES = storedResource({
  group: IDENTITY_GROUP,
  version: 'v1alpha1',
  resource: 'clusterstatuses',
  kind: 'ClusterStatus',
  scope: 'cluster',
  // It changes at every tick: a watch would cost a read per tick and client.
  verbs: ['get', 'list'],
});
