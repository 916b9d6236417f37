/**
 * Starts the due retries of works that object-stream parked (object-stream/parked-works.ts), and gives up old ones. This
 * tick does it because it runs in every period; it neither knows nor does the works.
 *
 * A retry is started first, and counted afterwards. A tick that is killed in between starts it again in the next period,
 * which is safe. Two concurrent ticks start it twice and count it once.
 *
 * Cost without parked rows: half a read unit per tick.
 */
import { ALL_FUNCTIONS } from '../../domain/functions/tick-metrics.ts';
import { type ParkedRow, parkedStore } from '../../store/parked-store.ts';
import { type WorkBudget, workThrough } from '../framework/bounded-work.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { RECORDS_GIVEN_UP } from '../framework/metrics.ts';
import { isGivenUp, retryDelayMs } from '../object-stream/parking.rule.ts';

/** Retries per tick: a bound on what a tick writes. The rows that have been due longest come first. */
const RETRIES_PER_TICK_MAX = 400;
const CONCURRENCY_MAX = 16;

/** The due rows, longest due first. */
export async function readDueRetries(
  { items }: Pick<ControllerDependencies, 'items'>,
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
  { items, log, meter }: Pick<ControllerDependencies, 'items' | 'log' | 'meter'>,
  rows: readonly ParkedRow[],
  { nowMs, budget }: { readonly nowMs: number; readonly budget: WorkBudget },
): Promise<readonly unknown[]> {
  const store = parkedStore(items);
  const { faults } = await workThrough(rows, { concurrencyMax: CONCURRENCY_MAX, budget }, async (row) => {
    if (!isGivenUp(row, nowMs)) {
      await store.startRetry(row.id, nowMs);
      await store.postpone(row, nowMs + retryDelayMs(row.tries));
      return;
    }
    if ((await store.settle(row, [])) === 'refused') return;
    meter.add(RECORDS_GIVEN_UP, 1, 'Count', ALL_FUNCTIONS);
    log.error('works of a stream record were given up', {
      object: row.id,
      works: row.works,
      tries: row.tries,
      ageSeconds: Math.round((nowMs - row.firstMs) / 1_000),
    });
  });
  return faults;
}
