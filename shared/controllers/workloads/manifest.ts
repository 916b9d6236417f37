import { CLAIM, COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../domain/functions/function-manifest.ts';

/** Kinds with objects that may own others, or whose removal an owner notices: revisions and, for DaemonSets, Nodes. */
const OWNER_KINDS = [
  'ControllerRevision',
  'CronJob',
  'DaemonSet',
  'Deployment',
  'Job',
  'Node',
  'Pod',
  'ReplicaSet',
  'ReplicationController',
  'StatefulSet',
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
        { eventName: ['REMOVE'], dynamodb: { OldImage: { k: { S: OWNER_KINDS } } } },
      ],
    },
  ],
  memoryMegabytes: 512,
  timeoutSeconds: 60,
  environment: POLICY_AND_TABLES,
  tables: {
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      'tick#workloads': CLAIM,
      fleet: ['GetItem'],
      'owner#*': ['DeleteItem', 'GetItem', 'UpdateItem'],
      'workloads-due': ['DeleteItem', 'PutItem', 'Query'],
    },
  },
} as const satisfies FunctionManifest;
