import { TICK_AGE } from '../../domain/functions/tick-metrics.ts';
import { slotStartMs, reportsAge } from '../../domain/tick.ts';
import type { Meter } from '../../ports/log.ts';

/** How late a tick works, where it is worth a line (domain/tick.ts). An alarm takes silence for a controller that does not run. */
export function tellTickAge(
  meter: Meter,
  at: { readonly slot: number; readonly periodSeconds: number; readonly nowMs: number },
): void {
  const ageMs = Math.max(0, at.nowMs - slotStartMs(at.slot, at.periodSeconds));
  if (reportsAge({ ...at, ageMs })) meter.add(TICK_AGE, ageMs / 1_000, 'Seconds');
}
