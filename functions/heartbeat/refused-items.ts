/**
 * Items of batches with a refused token. A relay cannot check tokens, so anyone in its site can fill its batches with
 * invented names. Each name costs two reads of keys: 200 per batch, where a request of its own would cost two. When a
 * relay has sent too many of them, its further items are answered 503 without a look at their tokens. Machines of the
 * site then send their heartbeats directly. Other relays are not affected.
 */
import { admitRequest, type RequestLimit } from '../../shared/access/request-throttle.ts';

/**
 * Refused items of one relay, per instance of the function. A machine without a valid key tries its relay once a
 * minute, so twenty of them remain below the limit.
 */
const REFUSED_ITEMS_LIMIT: RequestLimit = { ratePerSecond: 1 / 3, burst: 32 };
/** Relays in memory. The one with the oldest refusal is dropped first; its count then restarts. */
const RELAYS_MAX = 1_000;

export interface RefusedItems {
  /** Whether the token of a further item is checked. */
  mayCheck(relay: string, nowMs: number): boolean;
  /** The token of an item was refused. */
  note(relay: string, nowMs: number): void;
}

export function refusedItems(): RefusedItems {
  /** The state of the token buckets: when each is full again. Epoch milliseconds. */
  const fullAtMs = new Map<string, number>();
  return {
    mayCheck: (relay, nowMs) => admitRequest(fullAtMs.get(relay), nowMs, REFUSED_ITEMS_LIMIT).kind === 'admitted',
    note(relay, nowMs) {
      const admission = admitRequest(fullAtMs.get(relay), nowMs, REFUSED_ITEMS_LIMIT);
      // Several items are checked at a time. Those beyond the limit change nothing.
      if (admission.kind === 'refused') return;
      fullAtMs.delete(relay);
      fullAtMs.set(relay, admission.fullAtMs);
      if (fullAtMs.size > RELAYS_MAX) fullAtMs.delete(fullAtMs.keys().next().value as string);
    },
  };
}
