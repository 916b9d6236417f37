import { storedResource } from '../stored-resource.ts';
import type { KubeReplicaSet } from '../types.ts';

const selectableFields = {
  'status.replicas': (object: KubeReplicaSet) => String(object.status?.replicas ?? 0),
};

export const REPLICA_SETS = storedResource({
  group: 'apps',
  resource: 'replicasets',
  kind: 'ReplicaSet',
  scope: 'namespaced',
  selectableFields,
});

export const REPLICATION_CONTROLLERS = storedResource({
  group: '',
  resource: 'replicationcontrollers',
  kind: 'ReplicationController',
  scope: 'namespaced',
  selectableFields,
});
