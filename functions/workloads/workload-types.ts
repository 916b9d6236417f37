/** The workload kinds with the conditions of their status. */
import type * as stored from '../../shared/kinds/types.ts';
import type { ReplicaStatus } from '../../shared/kinds/types.ts';

export type { DeploymentSpec, PodTemplateSpec, ReplicaSetSpec } from '../../shared/kinds/types.ts';

export interface WorkloadCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  lastUpdateTime?: string;
}

export type WorkloadStatus = ReplicaStatus & { conditions?: WorkloadCondition[] };

export interface KubeReplicaSet extends stored.KubeReplicaSet {
  status?: WorkloadStatus;
}

export interface KubeDeployment extends stored.KubeDeployment {
  status?: WorkloadStatus;
}

export interface KubeStatefulSet extends stored.KubeStatefulSet {
  status?: WorkloadStatus & { currentRevision?: string; updateRevision?: string };
}
