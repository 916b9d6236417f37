/**
 * Who has work. Evictor, cloud-node and pod-gc cost nothing at rest: node-monitor's tick looks whether one of them has
 * work, and invokes it. The schedule of each minute invokes them too, so nothing depends on a wake-up that was lost.
 *
 * Whether a wake-up acts is decided by the claim of its slot. So it may come late, twice, or at once with a sweep.
 *
 * Cost of a tick without work: three queries of half a read unit, and one more per period of pod-gc.
 */
import type { FleetRecords } from '../fleet/zones/fleet-store.ts';
import type { ControllerDependencies } from './dependencies.ts';

/** The tick of node-monitor that looks. */
export interface WakeUpTick {
  /** When it began. Epoch milliseconds. */
  readonly nowMs: number;
  /** Start of its slot, and of the slot claimed before it; undefined before the first. Epoch milliseconds. */
  readonly slotStartMs: number;
  readonly slotBeforeStartMs: number | undefined;
  /** Read before its claim. */
  readonly records: FleetRecords;
}

/** Whether a controller has work at this tick. */
export type WorkCheck = (dependencies: ControllerDependencies, tick: WakeUpTick) => Promise<boolean>;

/** By the name of the function that is woken. A function without a check is only swept. */
export type WorkChecks = Readonly<Record<string, WorkCheck>>;

/**
 * Wakes the functions that have work. A check that fails wakes its function, which meets the same fault and reports it.
 * Returns the names of those that were woken. Never rejects.
 */
export async function wakeControllers(
  dependencies: ControllerDependencies,
  checks: WorkChecks,
  tick: WakeUpTick,
): Promise<readonly string[]> {
  if (dependencies.waker === undefined) return [];
  const found = await Promise.all(
    Object.entries(checks).map(async ([name, check]) =>
      (await check(dependencies, tick).catch(() => true)) ? [name] : [],
    ),
  );
  const names = found.flat();
  await wake(dependencies, names, tick.slotStartMs);
  return names;
}

/** Wakes these functions. Never rejects. */
export async function wake(
  { waker, log }: Pick<ControllerDependencies, 'waker' | 'log'>,
  names: readonly string[],
  slotStartMs: number,
): Promise<void> {
  if (waker === undefined || names.length === 0) return;
  const failed = await waker.wake(names, slotStartMs);
  if (failed.length > 0) log.warn('functions could not be woken: the next tick or sweep does their work', { failed });
}
