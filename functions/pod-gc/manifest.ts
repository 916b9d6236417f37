import { CLAIM, COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';

export const podGcManifest = {
  name: 'pod-gc',
  description: 'Deletes pods that no kubelet will finish, detaches unused volumes of unhealthy nodes',
  triggers: [
    {
      kind: 'tick',
      period: 'podGcPeriodSeconds',
      silence: { alarm: 'background', as: 'pods', consequence: 'orphaned pods are not deleted' },
    },
  ],
  memoryMegabytes: 512,
  timeoutSeconds: 30,
  environment: [...POLICY_AND_TABLES, 'ACCOUNT_ID'],
  ec2: ['DescribeInstances', 'DetachVolumes'],
  tables: {
    health: ['BatchGetItem', 'Scan'],
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      'tick#pod-gc': CLAIM,
      fleet: ['GetItem'],
      'pod-gc': ['DeleteItem', 'PutItem', 'Query', 'UpdateItem'],
    },
  },
} as const satisfies FunctionManifest;
