import type { KindStorage } from '../../api/kind-storage.ts';
import { events } from './serve.ts';

/** Events expire one hour after they were last written, as with upstream's --event-ttl. */
const EVENT_TTL_SECONDS = 3_600;

/**
 * Counted from the write, as upstream. The times in an event come from a machine, and its clock may be wrong by years.
 */
const expirySeconds = (nowMs: number): number => Math.ceil(nowMs / 1_000) + EVENT_TTL_SECONDS;

export const eventStorages: readonly KindStorage[] = [
  [
    events,
    (descriptor, { plain, clock }) => plain(descriptor, { expiresAtSeconds: () => expirySeconds(clock.nowMs()) }),
  ],
];
