import type { Log } from '../observability/log.ts';
import type { Waker } from './waker.ts';

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
