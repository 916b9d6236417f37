import { type AlarmManifest, largest } from '../../shared/functions/alarm-manifest.ts';
import { OLDEST_PENDING } from './metrics.ts';

export const schedulerAlarms: readonly AlarmManifest[] = [
  {
    name: 'pods-pending',
    rank: 87,
    meaning: 'A pod without scheduling gates has waited for a node for longer than pendingPodAlarmSeconds.',
    pages: false,
    metrics: { oldest: largest(OLDEST_PENDING) },
    when: '>',
    threshold: { policyField: 'pendingPodAlarmSeconds' },
    datapoints: [1, 6],
    missing: 'notBreaching',
    missingBecause: 'only passes emit the metric: there is one when a pod has waited so long, and one per attempt',
  },
];
