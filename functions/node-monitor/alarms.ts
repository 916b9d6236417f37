import {
  DISRUPTED_ZONES,
  GATE_HOLDING,
  HEARTBEATS_RECEIVED_SHARE,
  NOT_READY_SHARE_MAX,
  QUEUE_AGE_MAX,
  REFUSED_REQUESTS,
  TOTAL_DISRUPTION,
} from '../../shared/fleet/mark-metrics.ts';
import { type AlarmManifest, largest, mean } from '../../shared/functions/alarm-manifest.ts';
import { ticksAlarm } from '../../shared/functions/tick-metrics.ts';

/** Early warning: below the share at which a zone counts as disrupted (0.55 by default). Percent. */
const NOT_READY_SHARE_PERCENT = 30;
/** Below this share of the heartbeats. One lost heartbeat in five marks random nodes within hours. Percent. */
const RECEIVED_SHARE_PERCENT = 80;
/** Half an hour: at the usual rate 180 nodes of a zone are tainted in this time. Seconds. */
const QUEUE_AGE_SECONDS = 1_800;

export const nodeMonitorAlarms: readonly AlarmManifest[] = [
  ticksAlarm('node-monitor', 10, 'no silent node is detected'),
  {
    name: 'heartbeats-missing',
    rank: 45,
    // A heartbeat that API Gateway refuses calls no function, so only what is stored shows a partial loss.
    meaning: `Less than ${RECEIVED_SHARE_PERCENT} % of the heartbeats of the Ready nodes arrive: random nodes are marked.`,
    pages: true,
    // Nodes that fail stop sending before they are marked. That lasts one grace period, and counts by its share of a
    // minute.
    metrics: { received: mean(HEARTBEATS_RECEIVED_SHARE) },
    when: '<',
    threshold: RECEIVED_SHARE_PERCENT,
    datapoints: [3, 5],
    missing: 'notBreaching',
    missingBecause: 'without Ready nodes no heartbeat is expected; node-monitor-ticks covers missing ticks',
  },
  {
    name: 'evictions-held',
    rank: 50,
    meaning: 'Safety gate closed, our heartbeat path or ticks are unhealthy: no node is marked, tainted or evicted.',
    pages: true,
    metrics: { holding: largest(GATE_HOLDING) },
    when: '>=',
    threshold: 1,
    // Two of four: if node-monitor stops meanwhile, this alarm clears after node-monitor-ticks is in alarm, so the page
    // continues.
    datapoints: [2, 4],
    missing: 'notBreaching',
    missingBecause:
      'the metric is emitted while the gate is closed and five minutes more; node-monitor-ticks covers missing ticks',
  },
  {
    name: 'total-disruption',
    rank: 60,
    meaning: 'No zone has a Ready node: all evictions are stopped.',
    pages: true,
    metrics: { total: largest(TOTAL_DISRUPTION) },
    when: '>=',
    threshold: 1,
    datapoints: [1, 3],
    missing: 'notBreaching',
    missingBecause:
      'the metric is emitted while it lasts and there are nodes, and five minutes more; node-monitor-ticks covers missing ticks',
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
    missingBecause: 'the metric is emitted while there are zones; the last zone is deleted with its last node',
  },
  {
    name: 'not-ready-share',
    rank: 90,
    meaning: `${NOT_READY_SHARE_PERCENT} % or more of the nodes of a zone are not ready.`,
    pages: false,
    metrics: { share: largest(NOT_READY_SHARE_MAX) },
    when: '>=',
    threshold: NOT_READY_SHARE_PERCENT,
    datapoints: [3, 3],
    missing: 'notBreaching',
    missingBecause: 'the metric is emitted while there are zones; the last zone is deleted with its last node',
  },
  {
    name: 'eviction-queue-age',
    rank: 100,
    meaning: `A node has waited over ${QUEUE_AGE_SECONDS / 60} minutes in the eviction queue of its zone.`,
    pages: false,
    metrics: { age: largest(QUEUE_AGE_MAX) },
    when: '>',
    threshold: QUEUE_AGE_SECONDS,
    datapoints: [3, 3],
    missing: 'notBreaching',
    missingBecause: 'the metric is emitted only while a node waits',
  },
  {
    name: 'identity-over-limit',
    rank: 105,
    meaning: 'An identity sends too many requests, or too costly ones, for minutes: it is refused, others are served.',
    pages: false,
    metrics: { refused: largest(REFUSED_REQUESTS) },
    when: '>=',
    threshold: 1,
    datapoints: [3, 5],
    missing: 'notBreaching',
    missingBecause: 'the metric is emitted only after a minute with refused requests',
  },
];
