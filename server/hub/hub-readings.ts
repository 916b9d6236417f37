import type { MetricFamily } from '../../functions/api/metrics/open-metrics.ts';
import type { Clock } from '../../shared/clock.ts';
import { storedResources } from '../../shared/kinds/resources.ts';
import type { Reading } from '../process-metrics.ts';
import type { Hub } from './compose-hub.ts';
import type { Replica } from './replica.ts';

/** The hub in its own metrics. */
export const hubReadings = (
  { link }: Pick<Replica, 'link'>,
  { passing, shownStatuses }: Pick<Hub, 'passing' | 'shownStatuses'>,
  clock: Clock,
): readonly Reading[] => [
  {
    name: 'nodekeeper_hub_link_up',
    help: '1 while the cluster is followed.',
    type: 'gauge',
    read: () => Number(link().kind === 'up'),
  },
  {
    name: 'nodekeeper_hub_behind_seconds',
    help: 'Since the last complete read of the cluster, while it cannot be followed.',
    type: 'gauge',
    read() {
      const current = link();
      return current.kind === 'up' ? 0 : Math.max(0, clock.nowMs() - current.sinceMs) / 1_000;
    },
  },
  {
    name: 'nodekeeper_hub_passing_requests',
    help: 'Requests, streams and sessions that are being passed to the cluster.',
    type: 'gauge',
    read: passing.held,
  },
  {
    name: 'nodekeeper_hub_shown_statuses',
    help: 'Nodes and pods with a status that a machine of the site reported without the cluster.',
    type: 'gauge',
    read: shownStatuses,
  },
];

export const heldFamily = ({ holds }: Pick<Replica, 'holds'>): MetricFamily => ({
  name: 'nodekeeper_hub_holds',
  help: '1 for a resource that is in the copy. Reads of the others are passed to the cluster.',
  type: 'gauge',
  samples: storedResources.map(({ resource }) => ({ labels: { resource }, value: Number(holds(resource)) })),
});

export const passedFamily = ({ codes }: Pick<Hub['passing'], 'codes'>): MetricFamily => ({
  name: 'nodekeeper_hub_passed_requests_total',
  help: 'Requests that were passed to the cluster, by the code of the answer.',
  type: 'counter',
  samples: [...codes].map(([code, value]) => ({ labels: { code: String(code) }, value })),
});
