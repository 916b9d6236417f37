import type { Log } from '../shared/observability/log.ts';
import { type SqliteStore, SWEPT_MAX } from './store/sqlite-store.ts';

/** Between two sweeps of expired items, after one that found some, and after one that left some. Milliseconds. */
const SWEEP_MS = 30_000;
const SWEEP_AGAIN_MS = 1_000;
const SWEEP_REST_MS = 100;

/**
 * Until the next sweep. What expires each second was written each second an hour before. So a busy store must sweep as
 * fast as it writes: the file would grow without end otherwise.
 */
export function untilSweepMs(swept: number): number {
  if (swept === 0) return SWEEP_MS;
  return swept < SWEPT_MAX ? SWEEP_AGAIN_MS : SWEEP_REST_MS;
}

/** Deletes what has expired, as time to live does in DynamoDB, and soon again while there is more. */
export function sweepExpired(store: Pick<SqliteStore, 'sweepExpired'>, log: Log): () => void {
  let timer: NodeJS.Timeout | undefined;
  let isEnded = false;
  const sweep = async (): Promise<void> => {
    const swept = await store.sweepExpired().catch((error: unknown) => {
      log.warn('expired items could not be deleted: the next sweep does it', { error });
      return 0;
    });
    if (!isEnded) timer = setTimeout(sweep, untilSweepMs(swept));
  };
  timer = setTimeout(sweep, SWEEP_AGAIN_MS);
  return () => {
    isEnded = true;
    clearTimeout(timer);
  };
}
