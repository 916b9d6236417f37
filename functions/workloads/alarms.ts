import { type AlarmManifest, largest } from '../../shared/functions/alarm-manifest.ts';
import { LONGEST_SHORTAGE } from './metrics.ts';

export const workloadAlarms: readonly AlarmManifest[] = [
  {
    name: 'workload-short-of-pods',
    rank: 88,
    meaning: 'A workload has had fewer available pods than it wants for at least workloadShortageAlarmSeconds.',
    pages: false,
    metrics: { longest: largest(LONGEST_SHORTAGE) },
    when: '>=',
    threshold: { policyField: 'workloadShortageAlarmSeconds' },
    // A sweep, and so a value, comes every 15 minutes.
    datapoints: [1, 16],
    missing: 'notBreaching',
    missingBecause: 'a sweep emits the metric only while a workload lacks pods and the safety gate is open',
  },
];
