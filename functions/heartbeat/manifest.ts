import { type AlarmManifest, lambdaTotal } from '../../shared/functions/alarm-manifest.ts';
import type { FunctionManifest } from '../../shared/functions/function-manifest.ts';

/** A grace period has four heartbeats, so a single failure marks no node. One in twenty is still a fault. Percent. */
const FAILED_SHARE_PERCENT = 5;

const alarms: readonly AlarmManifest[] = [
  {
    name: 'heartbeats-stopped',
    rank: 30,
    meaning: 'No heartbeat arrives, not even our own probes.',
    pages: true,
    metrics: { beats: lambdaTotal('Invocations') },
    when: '<',
    threshold: 1,
    datapoints: [3, 3],
    missing: 'breaching',
    missingBecause: 'a function without calls has no data, and node-monitor probes at every tick',
  },
  {
    name: 'heartbeats-failing',
    rank: 40,
    meaning: `${FAILED_SHARE_PERCENT} % or more of the heartbeats fail in the function or are throttled before it.`,
    pages: true,
    metrics: {
      beats: lambdaTotal('Invocations'),
      errors: lambdaTotal('Errors'),
      throttles: lambdaTotal('Throttles'),
    },
    expression: '100 * (FILL(errors, 0) + FILL(throttles, 0)) / (FILL(beats, 0) + FILL(throttles, 0))',
    when: '>=',
    threshold: FAILED_SHARE_PERCENT,
    datapoints: [3, 5],
    missing: 'notBreaching',
    missingBecause: 'without heartbeats there is no share; heartbeats-stopped notices that',
  },
];

export const heartbeatManifest = {
  name: 'heartbeat',
  description: 'Renews the Leases of nodes',
  triggers: [{ kind: 'http', requests: 'leaseRenewals' }],
  memoryMegabytes: 256,
  timeoutSeconds: 7,
  environment: ['HEALTH_TABLE', 'CONTROL_TABLE', 'STATIC_TOKENS', 'BEAT_TIMES'],
  tables: {
    health: ['UpdateItem'],
    control: {
      'node-keys#*': ['GetItem'],
      'probe-keys': ['GetItem'],
      refusals: ['UpdateItem'],
      witnesses: ['UpdateItem'],
    },
  },
  alarms,
} as const satisfies FunctionManifest;
