import type { Log } from '../shared/observability/log.ts';
import type { SqliteStore } from './store/sqlite-store.ts';

/** Between two sweeps of expired items, and after one that found some. Milliseconds. */
const SWEEP_MS = 30_000;
const SWEEP_AGAIN_MS = 1_000;

/** Deletes what has expired, as time to live does in DynamoDB, and soon again while there is more. */
export function sweepExpired(store: Pick<SqliteStore, 'sweepExpired'>, log: Log): () => void {
  let timer: NodeJS.Timeout | undefined;
  let isEnded = false;
  const sweep = async (): Promise<void> => {
    const swept = await store.sweepExpired().catch((error: unknown) => {
      log.warn('expired items could not be deleted: the next sweep does it', { error });
      return 0;
    });
    if (!isEnded) timer = setTimeout(sweep, swept > 0 ? SWEEP_AGAIN_MS : SWEEP_MS);
  };
  timer = setTimeout(sweep, SWEEP_AGAIN_MS);
  return () => {
    isEnded = true;
    clearTimeout(timer);
  };
}
