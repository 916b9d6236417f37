import { type AlarmManifest, total } from '../../shared/functions/alarm-manifest.ts';
import { CLAIM, COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';
import { CLOUD_ANSWERS_FAILED } from './metrics.ts';

const alarms: readonly AlarmManifest[] = [
  {
    name: 'cloud-answers-failing',
    rank: 120,
    meaning: 'EC2 requests about nodes that are not Ready fail. None of these nodes is deleted.',
    pages: false,
    metrics: { failed: total(CLOUD_ANSWERS_FAILED) },
    when: '>',
    threshold: 0,
    datapoints: [5, 5],
    missing: 'notBreaching',
    missingBecause: 'the metric is written only while answers fail',
  },
];

export const cloudNodeManifest = {
  name: 'cloud-node',
  description: 'Asks EC2 about nodes that are not Ready, deletes the Nodes of terminated instances',
  triggers: [
    {
      kind: 'tick',
      period: 'nodeMonitorPeriodSeconds',
      silence: { alarm: 'background', as: 'cloud', consequence: 'Nodes of terminated instances are not deleted' },
    },
    // States after which a node that is not Ready may change; all others wait for the next tick.
    { kind: 'instanceStates', id: 'InstanceChanges', states: ['shutting-down', 'stopped', 'terminated'] },
  ],
  memoryMegabytes: 512,
  timeoutSeconds: 30,
  environment: [...POLICY_AND_TABLES, 'ACCOUNT_ID'],
  ec2: ['DescribeInstances'],
  tables: {
    health: ['DeleteItem', 'UpdateItem'],
    objects: ['BatchGetItem', 'DeleteItem', 'GetItem', ...COMMIT],
    control: {
      'tick#cloud-node': CLAIM,
      cloud: ['DeleteItem', 'GetItem', 'Query', 'UpdateItem'],
      'cloud-asked': ['GetItem', 'PutItem'],
    },
  },
  alarms,
} as const satisfies FunctionManifest;
