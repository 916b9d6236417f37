/**
 * Limits the requests of one identity: a token bucket, stored as one number, the time at which it is full again (GCRA,
 * as in limiter.ts, with a burst). A machine that sends too many requests slows down only itself.
 */
export interface RequestLimit {
  readonly ratePerSecond: number;
  /** Requests accepted at once after an idle time; at least 1. */
  readonly burst: number;
}

export type RequestAdmission =
  | { readonly kind: 'admitted'; readonly fullAtMs: number }
  /** In seconds, whole, at least 1: for Retry-After. */
  | { readonly kind: 'refused'; readonly retryAfterSeconds: number };

/** @param fullAtMs result of the previous request; undefined for an identity without a recent request */
export function admitRequest(fullAtMs: number | undefined, nowMs: number, limit: RequestLimit): RequestAdmission {
  const intervalMs = 1_000 / limit.ratePerSecond;
  const nextMs = Math.max(fullAtMs ?? nowMs, nowMs) + intervalMs;
  const waitMs = nextMs - nowMs - limit.burst * intervalMs;
  return waitMs > 1e-6
    ? { kind: 'refused', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) }
    : { kind: 'admitted', fullAtMs: nextMs };
}
