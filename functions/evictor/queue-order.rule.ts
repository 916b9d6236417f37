/** Queue order: time of enqueueing, then name. It never depends on the order of a read. */
import type { QueueItem } from '../../shared/fleet/fleet-records.ts';
export function compareQueueItems(a: QueueItem, b: QueueItem): number {
  if (a.addedAtMs !== b.addedAtMs) return a.addedAtMs - b.addedAtMs;
  if (a.nodeName === b.nodeName) return 0;
  return a.nodeName < b.nodeName ? -1 : 1;
}
