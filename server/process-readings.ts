import type { ChangeDelivery } from './changes/change-delivery.ts';
import type { Cluster } from './cluster.ts';
import { type DelayHistogram, eventLoopDelayReadings } from './event-loop-delay.ts';
import type { Listener } from './listener.ts';
import type { Reading } from './process-metrics.ts';

export interface ReadParts {
  readonly delay: DelayHistogram;
  readonly listener: Pick<Listener, 'connections' | 'counters'>;
  readonly heldWatches: () => number;
}

/** The process in its own metrics. */
export const processReadings = ({ delay, listener, heldWatches }: ReadParts): readonly Reading[] => [
  ...eventLoopDelayReadings(delay),
  {
    name: 'nodekeeper_held_watches',
    help: 'Watches that are held.',
    type: 'gauge',
    read: heldWatches,
  },
  { name: 'nodekeeper_connections', help: 'Open connections.', type: 'gauge', read: () => listener.connections() },
  { name: 'nodekeeper_requests_total', help: 'Requests.', type: 'counter', read: () => listener.counters.requests },
  {
    name: 'nodekeeper_server_errors_total',
    help: 'Answers with a code from 500 on.',
    type: 'counter',
    read: () => listener.counters.serverErrors,
  },
  {
    name: 'nodekeeper_refused_bodies_total',
    help: 'Bodies of requests that were too large, late, or too many at once.',
    type: 'counter',
    read: () => listener.counters.refusedBodies,
  },
  {
    name: 'nodekeeper_cut_answers_total',
    help: 'Answers that were not sent as a whole, because their clients read too slowly.',
    type: 'counter',
    read: () => listener.counters.cutAnswers,
  },
  {
    name: 'process_resident_memory_bytes',
    help: 'Resident memory.',
    type: 'gauge',
    read: () => process.memoryUsage.rss(),
  },
];

/** What only a process with a cluster of its own has. */
export const clusterReadings = (
  sessions: Pick<Cluster['sessions'], 'held'>,
  delivery: Pick<ChangeDelivery, 'waiting'>,
): readonly Reading[] => [
  {
    name: 'nodekeeper_open_sessions',
    help: 'Sessions of exec, attach and port-forward.',
    type: 'gauge',
    read: () => sessions.held(),
  },
  {
    name: 'nodekeeper_pending_changes',
    help: 'Committed changes in memory that functions have not processed, those of running batches included.',
    type: 'gauge',
    read: () => delivery.waiting().changes,
  },
];
