/**
 * ReplicaSets and ReplicationControllers: one controller, as upstream. A ReplicationController selects by a map of
 * labels. Source: pkg/controller/replication/conversion.go.
 */
import type { KubeObject, KubeReplicationController } from '../../../shared/kinds/types.ts';
import type { KubeReplicaSet } from '../workload-types.ts';

export interface SetKind {
  readonly kind: 'ReplicaSet' | 'ReplicationController';
  /** Source of its events. */
  readonly component: string;
  /** The stored object as a ReplicaSet. */
  readonly asReplicaSet: (stored: KubeObject) => KubeReplicaSet;
}

const REPLICA_SETS: SetKind = {
  kind: 'ReplicaSet',
  component: 'replicaset-controller',
  asReplicaSet: (stored) => stored as KubeReplicaSet,
};

const REPLICATION_CONTROLLERS: SetKind = {
  kind: 'ReplicationController',
  component: 'replication-controller',
  asReplicaSet(stored) {
    const { spec = {}, ...rest } = stored as KubeReplicationController;
    return { ...rest, spec: { ...spec, selector: { matchLabels: spec.selector ?? {} } } } as KubeReplicaSet;
  },
};

export const setKindOf = (resource: string): SetKind =>
  resource === 'replicationcontrollers' ? REPLICATION_CONTROLLERS : REPLICA_SETS;
