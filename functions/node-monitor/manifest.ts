import { COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';
import { nodeMonitorAlarms } from './alarms.ts';

export const nodeMonitorManifest = {
  name: 'node-monitor',
  description: 'Notices silence, marks nodes, keeps zone states, queues evictions',
  triggers: [{ kind: 'tick', chain: true, period: 'nodeMonitorPeriodSeconds', silence: { alarm: 'own' } }],
  // 100,000 nodes that fall silent at once take 560 MB (`npm run bench -- tick`).
  memoryMegabytes: 1_024,
  timeoutSeconds: 30,
  environment: [...POLICY_AND_TABLES, 'PROBE_URL', 'TICK_QUEUE_URL', 'PART_QUEUE_URL', 'WAKE_FUNCTIONS'],
  publishesEvents: true,
  tables: {
    health: ['BatchGetItem', 'Scan', 'UpdateItem'],
    objects: ['BatchGetItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      fleet: ['DeleteItem', 'GetItem', 'PutItem', 'Query', 'UpdateItem'],
      'probe-keys': ['GetItem', 'PutItem'],
      silences: ['PutItem'],
      witnesses: ['DeleteItem', 'Query'],
      refusals: ['Query'],
      // Whether there is work for the functions that it wakes.
      'evictions-due': ['Query'],
      parked: ['Query'],
      cloud: ['Query'],
      'pod-gc': ['Query'],
      scheduler: ['GetItem'],
      'workloads-due': ['Query'],
    },
  },
  // Probes pass through each way of a heartbeat.
  needsWith: { heartbeatUrl: [{ environment: ['HEARTBEAT_URL'] }] },
  alarms: nodeMonitorAlarms,
} as const satisfies FunctionManifest;
