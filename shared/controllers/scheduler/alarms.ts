import { type AlarmManifest, largest } from '../../domain/functions/alarm-manifest.ts';
import { OLDEST_PENDING } from './metrics.ts';

/** Seconds. Longer than the backoff and the start of a machine. */
const PENDING_SECONDS_MAX = 300;

export const schedulerAlarms: readonly AlarmManifest[] = [
  {
    name: 'pods-pending',
    rank: 87,
    meaning: `A pod without scheduling gates has waited for a node for over ${PENDING_SECONDS_MAX} s.`,
    pages: false,
    metrics: { oldest: largest(OLDEST_PENDING) },
    when: '>',
    threshold: PENDING_SECONDS_MAX,
    datapoints: [1, 6],
    missing: 'notBreaching',
    missingBecause: 'only passes emit the metric: a waiting pod is tried every five minutes, and none waits at rest',
  },
];
