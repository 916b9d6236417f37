/** The offset between the server's clock and ours: it dates our tokens and explains refusals (docs/security.md). */

/**
 * A smaller offset cannot be distinguished from network delay and the whole seconds of the Date header. Milliseconds.
 */
const OFFSET_NOTICED_MS = 5_000;
/** A refusal is explained if the offset differs this much from the one used for the token. Milliseconds. */
const OFFSET_EXPLAINS_MS = 15_000;

/** By how much the server's clock is ahead of ours; 0 for a difference too small to measure. Milliseconds. */
export function clockOffsetMs(serverTimeMs: number, nowMs: number): number {
  const offsetMs = serverTimeMs - nowMs;
  return Math.abs(offsetMs) < OFFSET_NOTICED_MS ? 0 : offsetMs;
}

/** Whether a token was refused because it was dated with a wrong offset. */
export const explainsRefusal = (madeWithOffsetMs: number, offsetMs: number): boolean =>
  Math.abs(madeWithOffsetMs - offsetMs) >= OFFSET_EXPLAINS_MS;
