import { type AlarmManifest, largest } from '../../domain/functions/alarm-manifest.ts';
import { ticksAlarm } from '../../domain/functions/tick-metrics.ts';
import { DISRUPTED_ZONES, GATE_HOLDING, NOT_READY_SHARE_MAX, QUEUE_AGE_MAX, TOTAL_DISRUPTION } from './metrics.ts';

/** Early warning: below the share at which a zone counts as disrupted (0.55 by default). Percent. */
const NOT_READY_SHARE_PERCENT = 30;
/** Half an hour: at the usual rate 180 nodes of a zone have had their turn by then. Seconds. */
const QUEUE_AGE_SECONDS = 1_800;

export const nodeMonitorAlarms: readonly AlarmManifest[] = [
  ticksAlarm('node-monitor', 10, 'nobody notices silent nodes'),
  {
    name: 'evictions-held',
    rank: 50,
    meaning: 'The gate holds: nodekeeper doubts its own ears, and marks, taints and evicts nobody.',
    pages: true,
    metrics: { holding: largest(GATE_HOLDING) },
    when: '>=',
    threshold: 1,
    // Of four: should node-monitor die meanwhile, this ends after node-monitor-ticks has begun, and the page continues.
    datapoints: [2, 4],
    missing: 'notBreaching',
    missingBecause:
      'the metric is written while the gate holds and for five minutes after; node-monitor-ticks notices silence',
  },
  {
    name: 'total-disruption',
    rank: 60,
    meaning: 'Every zone is dark: evictions are called off everywhere.',
    pages: true,
    metrics: { total: largest(TOTAL_DISRUPTION) },
    when: '>=',
    threshold: 1,
    datapoints: [1, 3],
    missing: 'notBreaching',
    missingBecause:
      'the metric is written while it lasts and for five minutes after; node-monitor-ticks notices silence',
  },
  {
    name: 'zone-disrupted',
    rank: 70,
    meaning: 'A zone is in partial or full disruption: most of its nodes are not ready.',
    pages: true,
    metrics: { zones: largest(DISRUPTED_ZONES) },
    when: '>=',
    threshold: 1,
    datapoints: [2, 2],
    missing: 'notBreaching',
    missingBecause: 'the metric is written while there are zones; the last zone ends with its last node',
  },
  {
    name: 'not-ready-share',
    rank: 90,
    meaning: `In some zone ${NOT_READY_SHARE_PERCENT} % or more of the nodes are not ready.`,
    pages: false,
    metrics: { share: largest(NOT_READY_SHARE_MAX) },
    when: '>=',
    threshold: NOT_READY_SHARE_PERCENT,
    datapoints: [3, 3],
    missing: 'notBreaching',
    missingBecause: 'the metric is written while there are zones; the last zone ends with its last node',
  },
  {
    name: 'eviction-queue-age',
    rank: 100,
    meaning: `A node has waited for over ${QUEUE_AGE_SECONDS / 60} minutes for its zone's eviction rate.`,
    pages: false,
    metrics: { age: largest(QUEUE_AGE_MAX) },
    when: '>',
    threshold: QUEUE_AGE_SECONDS,
    datapoints: [3, 3],
    missing: 'notBreaching',
    missingBecause: 'the metric is written only while a node waits',
  },
];
