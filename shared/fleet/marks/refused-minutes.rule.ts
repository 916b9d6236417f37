/**
 * Which minutes of refused requests a tick reports: each once, when the environments have written what they refused.
 */

const MINUTE_MS = 60_000;
/** Time after the end of a minute until its refusals are read: a slow write, and clocks that differ. Milliseconds. */
const WRITTEN_AFTER_MS = 10_000;
/** A tick after a long gap. Earlier minutes are not reported. */
const MINUTES_MAX = 5;

/**
 * @param slotStartMs start of the slot of this tick
 * @param slotBeforeStartMs the same of the tick before; undefined for the first one of a cluster
 * @returns starts of minutes, in order; usually none. Epoch milliseconds
 */
export function minutesToReport(slotStartMs: number, slotBeforeStartMs: number | undefined): number[] {
  const endedBy = (atMs: number): number => Math.floor((atMs - WRITTEN_AFTER_MS) / MINUTE_MS);
  const last = endedBy(slotStartMs);
  const first = slotBeforeStartMs === undefined ? last : endedBy(slotBeforeStartMs);
  const count = Math.min(MINUTES_MAX, Math.max(0, last - first));
  return Array.from({ length: count }, (_, index) => (last - count + index) * MINUTE_MS);
}

export interface RefusalVerdict {
  readonly kind: 'recorded';
  /** Requests per minute. */
  readonly refused: number;
}

/** Every identity that was refused is recorded. */
export const refusalVerdict = (count: number): RefusalVerdict | undefined =>
  count > 0 ? { kind: 'recorded', refused: count } : undefined;
