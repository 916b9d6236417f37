import type { Reading } from './process-metrics.ts';
import type { StoreMetrics } from './store/sqlite-store.ts';

/** Name, help and value. Names that end in `_total` are counters. */
const READINGS: readonly (readonly [name: string, help: string, read: (metrics: StoreMetrics) => number])[] = [
  ['store_groups_total', 'Transactions of the store.', ({ groups }) => groups],
  ['store_writes_total', 'Writes of the store.', ({ writes }) => writes],
  ['store_failed_writes_total', 'Writes that failed because of the disk.', ({ failedWrites }) => failedWrites],
  ['store_failing', '1 while the disk refuses writes.', ({ isFailing }) => Number(isFailing)],
  ['store_waiting_writes', 'Writes that wait for their group.', ({ waitingWrites }) => waitingWrites],
  ['store_group_interval_seconds', 'Least time between two groups.', ({ intervalMs }) => intervalMs / 1_000],
  ['store_sync_seconds_total', 'Time of all calls of fdatasync.', ({ syncMs }) => syncMs / 1_000],
  ['store_sync_max_seconds', 'Longest fdatasync since the start.', ({ syncMsMax }) => syncMsMax / 1_000],
  [
    'store_turn_max_seconds',
    'Longest turn of the event loop with a group since the start.',
    ({ turnMsMax }) => turnMsMax / 1_000,
  ],
  ['store_checkpoints_total', 'Checkpoints of the log.', ({ checkpoints }) => checkpoints],
  ['store_failed_checkpoints_total', 'Checkpoints that failed.', ({ failedCheckpoints }) => failedCheckpoints],
  ['store_held_seconds_total', 'Time that writes waited for the end of checkpoints.', ({ heldMs }) => heldMs / 1_000],
  ['store_held_max_seconds', 'Longest such wait since the start.', ({ heldMsMax }) => heldMsMax / 1_000],
  ['store_log_bytes', 'Size of the write-ahead log.', ({ logBytes }) => logBytes],
  ['store_file_bytes', 'Size of the database file.', ({ fileBytes }) => fileBytes],
  ['store_cache_hits_total', 'Reads from memory.', ({ cacheHits }) => cacheHits],
  ['store_cache_misses_total', 'Reads from the file.', ({ cacheMisses }) => cacheMisses],
  ['store_cache_bytes', 'Items in memory.', ({ cacheBytes }) => cacheBytes],
];

/** The store in the metrics of the process. */
export const storeReadings = (metrics: () => StoreMetrics): readonly Reading[] =>
  READINGS.map(([name, help, read]) => ({
    name: `nodekeeper_${name}`,
    help,
    type: name.endsWith('_total') ? 'counter' : 'gauge',
    read: () => read(metrics()),
  }));
