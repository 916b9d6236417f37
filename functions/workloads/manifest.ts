import { CLAIM, COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';
import { workloadAlarms } from './alarms.ts';

/**
 * Every kind in the table but Event. Objects of these may own others, quotas count them, and some are created again.
 * Events expire by the thousand, and no quota counts them.
 */
export const REMOVED_KINDS: readonly string[] = [
  'AgentRelease',
  'CSIDriver',
  'CSINode',
  'CSIStorageCapacity',
  'CertificateSigningRequest',
  'ClusterRole',
  'ClusterRoleBinding',
  'ConfigMap',
  'ControllerRevision',
  'CronJob',
  'CustomResourceDefinition',
  'DaemonSet',
  'Deployment',
  'EndpointSlice',
  'Endpoints',
  'HorizontalPodAutoscaler',
  'Ingress',
  'IngressClass',
  'Job',
  'Lease',
  'LimitRange',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'MutatingWebhookConfiguration',
  'Namespace',
  'NetworkPolicy',
  'Node',
  'PersistentVolume',
  'PersistentVolumeClaim',
  'Pod',
  'PodDisruptionBudget',
  'PodTemplate',
  'PriorityClass',
  'ReplicaSet',
  'ReplicationController',
  'ResourceQuota',
  'Role',
  'RoleBinding',
  'RuntimeClass',
  'Secret',
  'Service',
  'ServiceAccount',
  'SitePolicy',
  'StatefulSet',
  'StorageClass',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingWebhookConfiguration',
  'VolumeAttachment',
];

export const workloadsManifest = {
  name: 'workloads',
  description: 'Creates, replaces and deletes the pods of workloads; collects what an owner leaves behind',
  triggers: [
    {
      kind: 'tick',
      period: 'nodeMonitorPeriodSeconds',
      silence: { alarm: 'background', as: 'workloads', consequence: 'waiting times of rollouts are not noticed' },
    },
    {
      kind: 'stream',
      id: 'WorkloadChanges',
      table: 'objects',
      filters: [
        // The commit changed what these controllers read (shared/store/workload-change.ts).
        { eventName: ['INSERT', 'MODIFY'], dynamodb: { NewImage: { w: { N: ['1'] } } } },
        { eventName: ['REMOVE'], dynamodb: { OldImage: { k: { S: REMOVED_KINDS } } } },
        { eventName: ['REMOVE'], dynamodb: { OldImage: { x: { N: ['1'] } } } },
      ],
    },
  ],
  memoryMegabytes: 512,
  timeoutSeconds: 60,
  environment: POLICY_AND_TABLES,
  tables: {
    // The news for agents: a volume to make, changed Services.
    health: ['UpdateItem'],
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      'tick#workloads': CLAIM,
      fleet: ['GetItem'],
      'owner#*': ['DeleteItem', 'GetItem', 'UpdateItem'],
      scheduler: ['UpdateItem'],
      'service-readers': ['Query'],
      'volume-work#*': ['PutItem'],
      'workload-shortages': ['GetItem', 'PutItem'],
      'workloads-due': ['DeleteItem', 'PutItem', 'Query'],
    },
  },
  alarms: workloadAlarms,
} as const satisfies FunctionManifest;
