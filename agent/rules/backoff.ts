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

/** The answers whose Retry-After is meant for the next request; a redirect may carry one too. */
const asksToWait = (status: number): boolean => status === 429 || status === 503;

/**
 * What this answer asks us to wait, bounded, and longer by up to half at random: the agents that were sent away together
 * shall not come back together. 0 when it asks for nothing. `fraction` in [0, 1). Milliseconds.
 */
export function retryAfterWaitMs(
  answer: { readonly status: number; readonly retryAfterMs?: number },
  fraction: number,
): number {
  if (!asksToWait(answer.status) || answer.retryAfterMs === undefined) return 0;
  const askedMs = Math.min(Math.max(0, answer.retryAfterMs), RETRY_AFTER_LIMIT_MS);
  return Math.round(askedMs * (1 + fraction / 2));
}
