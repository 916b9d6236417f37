import type { Log } from '../observability/log.ts';

export interface FailedWakeUp {
  readonly name: string;
  readonly reason: string;
}

/** Starts other functions of the cluster. A wake-up may be lost, late or doubled. */
export interface Waker {
  /**
   * Starts each function for the tick that began at `atMs`, without waiting for its end. Never rejects: a controller
   * that is not woken is swept within a minute. Returns what failed.
   */
  wake(names: readonly string[], atMs: number): Promise<readonly FailedWakeUp[]>;
}

/**
 * Wakes these functions. Never rejects: the next tick or sweep does their work.
 *
 * Whether a wake-up acts is decided by the claim of its slot. So it may come late, twice, or at once with a sweep.
 */
export async function wake(
  { waker, log }: { readonly waker?: Waker; readonly log: Log },
  names: readonly string[],
  slotStartMs: number,
): Promise<void> {
  if (waker === undefined) return;
  const failed = await waker.wake(names, slotStartMs);
  if (failed.length > 0) log.warn('functions could not be woken: the next tick or sweep does their work', { failed });
}
