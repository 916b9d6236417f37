/** Which reports a tick makes, by its time. A quiet tick makes few: log lines, metrics and reads are billed. */
import { COST_PERIOD_SECONDS } from '../../shared/cost/running-cost.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Whether this tick looks for heartbeats that are too rare: the first of an hour. */
export const evaluatesIntervals = (nowMs: number, periodSeconds: number): boolean =>
  nowMs % HOUR_MS < periodSeconds * 1_000;

/** Every tick in these first minutes of an interval reports the cost, in case one is lost. All are in one hour. */
const COST_MINUTES = 5;

/** Whether the tick of the slot with this start reports the cost. */
export const reportsCost = (slotStartMs: number): boolean =>
  slotStartMs % MINUTE_MS === 0 && slotStartMs % (COST_PERIOD_SECONDS * 1_000) < COST_MINUTES * MINUTE_MS;

/** Time after the end of a minute until its refusals are read: a slow write, and clocks that differ. Milliseconds. */
const WRITTEN_AFTER_MS = 10_000;
/** A tick after a long gap. Earlier minutes are not reported. */
const MINUTES_MAX = 5;

/**
 * The minutes of refused requests that a tick reports: each once, when the environments have written what they refused.
 *
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
