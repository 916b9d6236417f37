/**
 * Changes of items, from the stream of a table: delivered at least once, in order for each item.
 *
 * A stream delivers in lanes. A record that is reported as failed is delivered again with all records behind it, so one
 * bad object would delay other nodes (law L12). A fault therefore blocks a lane only where every record would fail:
 *
 *   - not retryable: the record is given up, counted and logged;
 *   - retryable: the work is run once more after the other records of the batch. After that the function decides.
 *     health-stream leaves the work to node-monitor, object-stream parks it (object-stream/work.ts).
 */

import { defined } from '../defined.ts';
import * as metric from '../functions/tick-metrics.ts';
import { ALL_FUNCTIONS } from '../functions/tick-metrics.ts';
import { type Item, StoreFault } from '../store/item-store.ts';
import { UNBOUNDED, type WorkBudget, workThrough } from './bounded-work.ts';
import type { WorkDependencies } from './dependencies.ts';

export interface ItemChangeRecord {
  readonly type: 'INSERT' | 'MODIFY' | 'REMOVE';
  readonly key: { readonly pk: string; readonly sk: string };
  readonly oldImage?: Item;
  readonly newImage?: Item;
}

export interface ChangesOutcome {
  /** Position of the first record that could not be processed. It and all later records are delivered again. */
  readonly failedFrom?: number;
  /** Faults of records that are delivered again, and of records that are given up. */
  readonly faults: readonly unknown[];
  /** Faults of records with postponed work: done by a retry of their parked row, or by a tick. */
  readonly postponed: readonly unknown[];
}

/** Faults of programs and of stored data. They recur at every delivery. */
const NOT_RETRYABLE = [TypeError, RangeError, SyntaxError, ReferenceError];

/** Whether the same work may succeed later. */
export function isRetryable(fault: unknown): boolean {
  if (fault instanceof StoreFault) return fault.retryable;
  if (fault instanceof AggregateError) return fault.errors.some(isRetryable);
  return !NOT_RETRYABLE.some((kind) => fault instanceof kind);
}

/** A unit of work that one or more records require. A fault does not stop the other units. */
export interface RecordWork {
  /** Positions of these records. */
  readonly of: readonly number[];
  readonly run: () => Promise<unknown>;
}

/**
 * Runs all works, `concurrencyMax` at a time. Then it runs those with a retryable fault once more, within the budget:
 * contention with another commit usually ends within a second. Returns the works that failed, with the last fault.
 */
export async function runRecordWorks<W extends RecordWork>(
  works: readonly W[],
  { concurrencyMax, retryBudget }: { readonly concurrencyMax: number; readonly retryBudget: WorkBudget },
): Promise<ReadonlyMap<W, unknown>> {
  const failed = new Map<W, unknown>();
  const attempt = async (work: W): Promise<void> => {
    try {
      await work.run();
      failed.delete(work);
    } catch (fault) {
      failed.set(work, fault);
    }
  };
  await workThrough(works, { concurrencyMax, budget: UNBOUNDED }, attempt);
  const retryable = [...failed].flatMap(([work, fault]) => (isRetryable(fault) ? [work] : []));
  await workThrough(retryable, { concurrencyMax, budget: retryBudget }, attempt);
  return failed;
}

/**
 * Handles a batch, and counts what it gives up or postpones. When `handle` rejects, because a record cannot be read,
 * each half of the batch is handled alone, down to that record. Completed work is then repeated, as after a second
 * delivery.
 */
export async function handleRecords(
  { meter }: Pick<WorkDependencies, 'meter'>,
  records: readonly ItemChangeRecord[],
  handle: (records: readonly ItemChangeRecord[]) => Promise<ChangesOutcome>,
): Promise<ChangesOutcome> {
  const outcome = await handleInHalves(records, handle);
  const givenUp = outcome.faults.filter((fault) => !isRetryable(fault)).length;
  if (givenUp > 0) meter.add(metric.RECORDS_GIVEN_UP, givenUp, 'Count', ALL_FUNCTIONS);
  const postponed = outcome.postponed.length;
  if (postponed > 0) meter.add(metric.RECORD_WORKS_POSTPONED, postponed, 'Count', ALL_FUNCTIONS);
  return outcome;
}

async function handleInHalves(
  records: readonly ItemChangeRecord[],
  handle: (records: readonly ItemChangeRecord[]) => Promise<ChangesOutcome>,
): Promise<ChangesOutcome> {
  try {
    return await handle(records);
  } catch (fault) {
    if (isRetryable(fault)) return { failedFrom: 0, faults: [fault], postponed: [] };
    if (records.length <= 1) return { faults: [fault], postponed: [] };
    const middle = Math.ceil(records.length / 2);
    const first = await handleInHalves(records.slice(0, middle), handle);
    const second = await handleInHalves(records.slice(middle), handle);
    const { failedFrom } = second;
    return combined(first, failedFrom === undefined ? second : { ...second, failedFrom: failedFrom + middle });
  }
}

/** One outcome for several parts of the same batch. */
export function combined(...outcomes: readonly ChangesOutcome[]): ChangesOutcome {
  const failed = outcomes.flatMap(({ failedFrom }) => (failedFrom === undefined ? [] : [failedFrom]));
  return {
    faults: outcomes.flatMap(({ faults }) => faults),
    postponed: outcomes.flatMap(({ postponed }) => postponed),
    ...defined({ failedFrom: failed.length === 0 ? undefined : Math.min(...failed) }),
  };
}
