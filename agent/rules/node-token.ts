/** What the server's clock makes of ours: by it the agent dates its tokens and explains refusals (docs/security.md). */

/** A smaller difference of clocks is not told from the way an answer takes and from whole seconds in Date. Milliseconds. */
const OFFSET_NOTICED_MS = 5_000;
/** Another offset than the one a token was made with, by which a refusal is explained. Milliseconds. */
const OFFSET_EXPLAINS_MS = 15_000;

/** By how much the server's clock is ahead of ours; 0 when there is no difference worth the name. Milliseconds. */
export function clockOffsetMs(serverTimeMs: number, nowMs: number): number {
  const offsetMs = serverTimeMs - nowMs;
  return Math.abs(offsetMs) < OFFSET_NOTICED_MS ? 0 : offsetMs;
}

/** Whether a token made with one offset was refused because the other is true. */
export const explainsRefusal = (madeWithOffsetMs: number, offsetMs: number): boolean =>
  Math.abs(madeWithOffsetMs - offsetMs) >= OFFSET_EXPLAINS_MS;
