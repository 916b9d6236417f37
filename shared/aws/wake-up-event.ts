/** Events that start a tick of a function: a wake-up of node-monitor, or the sweep of a schedule. */

import type { Clock } from '../clock.ts';
import { ALL_FUNCTIONS, FAILED_TICKS, TICK_AGE } from '../functions/tick-metrics.ts';
import type { Log, Meter } from '../observability/log.ts';
import { currentSlot, ranNevertheless, slotOf, slotStartMs } from '../ticks/tick.ts';

export interface WakeUpEvent {
  /** Start of the tick of node-monitor that found work. Epoch milliseconds. */
  readonly wakeUpAtMs: number;
}

export const wakeUpEvent = (atMs: number): WakeUpEvent => ({ wakeUpAtMs: atMs });

export interface WakeUpHandling {
  readonly periodSeconds: number;
  readonly log: Log;
  readonly meter: Meter;
  readonly clock: Clock;
  /** Whether each sweep emits the age of its tick, for an alarm on the silence of this function. */
  readonly reportsSweeps?: boolean;
  runTick(slot: number): Promise<unknown>;
}

const LOGGED_CAUSES_MAX = 5;

/**
 * Runs the tick of an event. A wake-up has the slot of the tick that sent it. By its time of arrival, the wake-ups of
 * two ticks could fall into one slot. A sweep has the slot of this moment. The claim of the
 * slot decides whether it acts. A tick that fails is not repeated: the next wake-up or sweep does its work.
 */
export async function handleWakeUp(event: unknown, handling: WakeUpHandling): Promise<void> {
  const { periodSeconds, log, meter, clock } = handling;
  const nowMs = clock.nowMs();
  const wakeUpAtMs = wakeUpTime(event);
  const slot = wakeUpAtMs === undefined ? currentSlot(nowMs, periodSeconds) : slotOf(wakeUpAtMs, periodSeconds);
  try {
    await handling.runTick(slot);
  } catch (error) {
    meter.add(FAILED_TICKS, 1, 'Count', ALL_FUNCTIONS);
    log.error('a tick failed', { slot, error, causes: causesOf(error) });
    if (!ranNevertheless(error)) return;
  }
  if (wakeUpAtMs !== undefined || handling.reportsSweeps !== true) return;
  meter.add(TICK_AGE, Math.max(0, nowMs - slotStartMs(slot, periodSeconds)) / 1_000, 'Seconds');
}

function wakeUpTime(event: unknown): number | undefined {
  if (typeof event !== 'object' || event === null) return undefined;
  const { wakeUpAtMs } = event as Partial<WakeUpEvent>;
  return typeof wakeUpAtMs === 'number' && Number.isFinite(wakeUpAtMs) ? wakeUpAtMs : undefined;
}

const causesOf = (error: unknown): string[] =>
  error instanceof AggregateError ? error.errors.slice(0, LOGGED_CAUSES_MAX).map(String) : [];
