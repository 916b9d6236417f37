import { CLAIM, COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';
import { ticksAlarm } from '../../shared/functions/tick-metrics.ts';

export const evictorManifest = {
  name: 'evictor',
  description: 'Adds NoExecute taints at the rate of each zone, deletes due pods, starts due retries',
  triggers: [{ kind: 'tick', period: 'nodeMonitorPeriodSeconds', silence: { alarm: 'own' } }],
  memoryMegabytes: 512,
  timeoutSeconds: 30,
  environment: POLICY_AND_TABLES,
  tables: {
    health: ['BatchGetItem', 'UpdateItem'],
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      'tick#evictor': CLAIM,
      fleet: ['ConditionCheckItem', 'DeleteItem', 'Query', 'UpdateItem'],
      'evictions#*': ['DeleteItem', 'GetItem', 'PutItem'],
      'evictions-due': ['DeleteItem', 'PutItem', 'Query'],
      parked: ['DeleteItem', 'Query', 'UpdateItem'],
    },
  },
  alarms: [ticksAlarm('evictor', 20, 'pods stay on dead nodes')],
} as const satisfies FunctionManifest;
