import type { AgentTime } from '../ports/time.ts';

/**
 * Waits for the work until the limit is over or the signal is aborted. The work itself continues. Rejects as the work
 * does.
 *
 * @param limitMs milliseconds
 */
export async function waitAtMost(
  time: Pick<AgentTime, 'sleep'>,
  limitMs: number,
  work: Promise<unknown>,
  stop?: AbortSignal,
): Promise<'done' | 'timedOut'> {
  const over = new AbortController();
  const signal = stop === undefined ? over.signal : AbortSignal.any([stop, over.signal]);
  try {
    const limit = time.sleep(limitMs, signal).then((): 'timedOut' => 'timedOut');
    return await Promise.race([work.then((): 'done' => 'done'), limit]);
  } finally {
    over.abort();
  }
}
