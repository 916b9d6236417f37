/** Waits between attempts, which double up to a limit. */
export interface Backoff {
  readonly firstMs: number;
  /** Without its jitter. */
  readonly limitMs: number;
  /**
   * Shares of the doubled wait between which a wait is random: those that failed together must not fail together again.
   * @default none: the doubled wait
   */
  readonly jitter?: readonly [least: number, most: number];
}

/** 2^30 exceeds every limit and is still an exact number. */
const DOUBLINGS_MAX = 30;

/**
 * The wait with this number, counted from 0. Milliseconds.
 *
 * @param fraction a random number in [0, 1), for the jitter
 */
export function backoffMs(
  { firstMs, limitMs, jitter: [least, most] = [1, 1] }: Backoff,
  number: number,
  fraction = 1,
): number {
  const doubledMs = Math.min(limitMs, firstMs * 2 ** Math.min(number, DOUBLINGS_MAX));
  return doubledMs * (least + (most - least) * fraction);
}
