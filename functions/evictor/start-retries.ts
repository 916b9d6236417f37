/**
 * Starts the due retries of works that object-stream parked (functions/object-stream/work.ts). evictor does it,
 * because node-monitor wakes it while one is due; it neither knows nor does the works. A row that is retried for two
 * hours without a result is given up.
 *
 * A retry is started first, and counted afterwards. A tick that is killed in between starts it again in the next
 * period, which is safe. Two concurrent ticks start it twice and count it once.
 *
 * Cost without parked rows: half a read unit per tick.
 */
import { type WorkBudget, workThrough } from '../../shared/ticks/bounded-work.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import { type ParkedRow, parkedStore, reportGivenUp } from '../../shared/ticks/parked-store.ts';
import { isRowGivenUp, retryDelayMs } from '../../shared/ticks/parking.rule.ts';

/** Retries per tick: a bound on what a tick writes. The rows that have been due longest come first. */
const RETRIES_PER_TICK_MAX = 400;
const CONCURRENCY_MAX = 16;

/** The due rows, longest due first. */
export async function readDueRetries(
  { items }: Pick<WorkDependencies, 'items'>,
  nowMs: number,
): Promise<readonly ParkedRow[]> {
  const rows = await parkedStore(items).list();
  return rows
    .filter(({ dueMs }) => dueMs <= nowMs)
    .toSorted((one, other) => one.dueMs - other.dueMs)
    .slice(0, RETRIES_PER_TICK_MAX);
}

/** Returns the faults of single rows; those rows are due again at the next tick. */
export async function startRetries(
  { items, log, meter }: Pick<WorkDependencies, 'items' | 'log' | 'meter'>,
  rows: readonly ParkedRow[],
  { nowMs, budget }: { readonly nowMs: number; readonly budget: WorkBudget },
): Promise<readonly unknown[]> {
  const store = parkedStore(items);
  const { faults } = await workThrough(rows, { concurrencyMax: CONCURRENCY_MAX, budget }, async (row) => {
    if (!isRowGivenUp(row, nowMs)) {
      await store.startRetry(row.id, nowMs);
      await store.postpone(row, nowMs + retryDelayMs(row.tries));
      return;
    }
    if ((await store.settle(row, [])) === 'refused') return;
    reportGivenUp({ log, meter }, row, { works: row.works, nowMs });
  });
  return faults;
}
