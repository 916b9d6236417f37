import { COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';
import { schedulerAlarms } from './alarms.ts';

export const schedulerManifest = {
  name: 'scheduler',
  description: 'Binds pods to nodes; deletes pods of lower priority for those that do not fit',
  triggers: [
    {
      kind: 'tick',
      period: 'nodeMonitorPeriodSeconds',
      silence: { alarm: 'background', as: 'scheduling', consequence: 'pods are not bound' },
    },
  ],
  // A copy of 5,000 nodes and 50,000 pods takes 300 MB; the CPU share decides how fast a pass is.
  memoryMegabytes: 1_024,
  timeoutSeconds: 60,
  environment: POLICY_AND_TABLES,
  tables: {
    health: ['BatchGetItem', 'Scan'],
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      fleet: ['GetItem'],
      scheduler: ['DeleteItem', 'GetItem', 'PutItem', 'Query', 'UpdateItem'],
      'use#*': ['DeleteItem', 'Query', 'UpdateItem'],
    },
  },
  alarms: schedulerAlarms,
} as const satisfies FunctionManifest;
