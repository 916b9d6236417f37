import { apiVersionOf } from '../../kubernetes/normal-form.ts';
import { IDENTITY_GROUP } from '../identities/resource.ts';
import { storedResource } from '../stored-resource.ts';

export const CLUSTER_STATUS = 'cluster';
/** The object always exists and is never created, so its uid is fixed. */
export const CLUSTER_STATUS_UID = '6e6f6465-6b65-4570-8572-636c75737465';

export const CLUSTER_STATUSES = storedResource({
  group: IDENTITY_GROUP,
  version: 'v1alpha1',
  resource: 'clusterstatuses',
  kind: 'ClusterStatus',
  scope: 'cluster',
  // It changes at every tick: a watch would cost a read per tick and client.
  verbs: ['get', 'list'],
});

/** What events of the whole cluster are about. */
export const CLUSTER_SUBJECT = {
  kind: 'ClusterStatus',
  apiVersion: apiVersionOf(CLUSTER_STATUSES),
  namespace: '',
  name: CLUSTER_STATUS,
  uid: CLUSTER_STATUS_UID,
} as const;
