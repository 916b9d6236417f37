import { TICK_AGE } from '../functions/tick-metrics.ts';
import type { Meter } from '../observability/log.ts';
import { reportsAge, slotStartMs } from './tick.ts';

/** Emits the delay of a tick when it is due. An alarm treats a missing metric as a controller that stopped. */
export function reportTickAge(
  meter: Meter,
  at: {
    readonly slot: number;
    /** The slot that was claimed before it, where that is known. */
    readonly slotBefore?: number | undefined;
    readonly periodSeconds: number;
    readonly nowMs: number;
  },
): void {
  const ageMs = Math.max(0, at.nowMs - slotStartMs(at.slot, at.periodSeconds));
  if (reportsAge({ ...at, ageMs })) meter.add(TICK_AGE, ageMs / 1_000, 'Seconds');
}
