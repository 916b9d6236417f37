/** Waits between attempts that double up to a limit, and what a server's Retry-After adds to them. */
export interface Doubling {
  readonly firstMs: number;
  readonly limitMs: number;
}

/** Between tries to make sure that the Lease exists (component-helpers/apimachinery/lease/controller.go). */
export const ENSURE_LEASE_WAITS: Doubling = { firstMs: 200, limitMs: 7_000 };
/** Before each attempt to register (pkg/kubelet/kubelet_node_status.go). */
export const REGISTRATION_WAITS: Doubling = { firstMs: 100, limitMs: 7_000 };

/** 2^30 is past every limit, and before numbers stop being exact. */
const DOUBLINGS_MAX = 30;

/** The wait of this number, counted from 0. Milliseconds. */
export const doublingWaitMs = ({ firstMs, limitMs }: Doubling, number: number): number =>
  Math.min(limitMs, firstMs * 2 ** Math.min(number, DOUBLINGS_MAX));

/**
 * How long a server may keep us waiting, whatever it asks: a quarter of the usual lease, so that a mistaken hour does not
 * cost the node its life. Milliseconds.
 */
const RETRY_AFTER_LIMIT_MS = 10_000;
/**
 * The least wait after a 429 that names no time, as the one of API Gateway; the most is the limit above. A whole fleet that
 * tries again at once, or after waits that double alike for all, comes in waves that are refused again, with nothing to do for
 * the server in between (bench storm). Milliseconds.
 */
const UNNAMED_WAIT_MS = 1_000;

/** The answers whose Retry-After is meant for the next request; a redirect may carry one too. */
const asksToWait = (status: number): boolean => status === 429 || status === 503;

/**
 * What this answer asks us to wait, bounded, and longer by up to half at random: the agents that were sent away together
 * shall not come back together. One that says "too many requests" and names no time spreads them over ten seconds. 0 when it
 * asks for nothing. `fraction` in [0, 1). Milliseconds.
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
