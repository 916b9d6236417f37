/** Waits between attempts, and the waits that a Retry-After requests. */
import type { Backoff } from '../../shared/backoff.ts';

/** Between attempts to read or create the Lease (component-helpers/apimachinery/lease/controller.go). */
export const ENSURE_LEASE_WAITS: Backoff = { firstMs: 200, limitMs: 7_000 };
/** Before each attempt to register (pkg/kubelet/kubelet_node_status.go). */
export const REGISTRATION_WAITS: Backoff = { firstMs: 100, limitMs: 7_000 };

/**
 * Longest wait for any Retry-After: a quarter of the usual lease duration. A mistaken Retry-After of an hour must not
 * make the node NotReady. Milliseconds.
 */
const RETRY_AFTER_LIMIT_MS = 10_000;
/**
 * Shortest wait after a 429 without Retry-After, as API Gateway sends it. The longest is the limit above. Without this
 * spread a fleet retries in waves: each wave is refused again, and the server is idle between them (bench storm).
 * Milliseconds.
 */
const UNNAMED_WAIT_MS = 1_000;

/** In these answers Retry-After applies to the next request. A redirect may carry one with another meaning. */
const asksToWait = (status: number): boolean => status === 429 || status === 503;

/**
 * The wait that this answer requests, bounded, plus up to half of it at random: agents that were refused together must
 * not retry together. A 429 without Retry-After spreads them over ten seconds. 0 if the answer requests no wait.
 * `fraction` in [0, 1). Milliseconds.
 */
export function retryAfterWaitMs(
  answer: { readonly status: number; readonly retryAfterMs?: number },
  fraction: number,
): number {
  if (!asksToWait(answer.status)) return 0;
  if (answer.retryAfterMs === undefined) {
    return answer.status === 429
      ? Math.round(UNNAMED_WAIT_MS + (RETRY_AFTER_LIMIT_MS - UNNAMED_WAIT_MS) * fraction)
      : 0;
  }
  const askedMs = Math.min(Math.max(0, answer.retryAfterMs), RETRY_AFTER_LIMIT_MS);
  return Math.round(askedMs * (1 + fraction / 2));
}
