/**
 * The limit of events about one object: a token bucket. Source: client-go tools/record/events_cache.go,
 * EventSourceObjectSpamFilter.
 */

/** defaultSpamBurst. */
const BURST_MAX = 25;
/** defaultSpamQPS: one event in 5 minutes. */
const REFILL_INTERVAL_MS = 300_000;

export interface SpamBucket {
  readonly tokens: number;
  /** When a token was last added. Monotonic milliseconds. */
  readonly refilledAtMs: number;
}

/** The bucket after one more event, and whether that event may be sent. `bucket` is undefined for the first event. */
export function spendEventToken(
  bucket: SpamBucket | undefined,
  monotonicMs: number,
): { readonly bucket: SpamBucket; readonly isAllowed: boolean } {
  const { tokens, refilledAtMs } = bucket ?? { tokens: BURST_MAX, refilledAtMs: monotonicMs };
  const refills = Math.floor((monotonicMs - refilledAtMs) / REFILL_INTERVAL_MS);
  const available = Math.min(BURST_MAX, tokens + refills);
  const isAllowed = available >= 1;
  return {
    bucket: {
      tokens: isAllowed ? available - 1 : available,
      refilledAtMs: refilledAtMs + refills * REFILL_INTERVAL_MS,
    },
    isAllowed,
  };
}
