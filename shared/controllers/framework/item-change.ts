/** A change of one item, as a table's stream tells it: at least once, in order for each item. */

import { ALL_FUNCTIONS } from '../../domain/functions/tick-metrics.ts';
import { type Item, StoreFault } from '../../ports/item-store.ts';
import type { ControllerDependencies } from './dependencies.ts';
import * as metric from './metrics.ts';

export interface ItemChangeRecord {
  readonly type: 'INSERT' | 'MODIFY' | 'REMOVE';
  readonly key: { readonly pk: string; readonly sk: string };
  readonly oldImage?: Item;
  readonly newImage?: Item;
}

export interface ChangesOutcome {
  /** Position of the first record that could not be processed. It and all later records are delivered again. */
  readonly failedFrom?: number;
  /** Of records that are to be sent again, and of those that are given up. */
  readonly faults: readonly unknown[];
}

/** Faults of programs and of what is stored, which are the same whenever the record comes. */
const LASTING = [TypeError, RangeError, SyntaxError, ReferenceError];

/**
 * Whether the same record may succeed when it comes again. One that cannot is given up at once, and reported: sent again, it
 * would hold its shard until its retries are used up, and with it the records of innocent nodes (law L12).
 */
export function mayPass(fault: unknown): boolean {
  if (fault instanceof StoreFault) return fault.retryable;
  if (fault instanceof AggregateError) return fault.errors.some(mayPass);
  return !LASTING.some((kind) => fault instanceof kind);
}

/** Work on behalf of some records; the rest goes on when it fails. */
export interface RecordWork {
  /** Positions of the records it is for. */
  readonly of: readonly number[];
  readonly run: () => Promise<unknown>;
}

/** Bounded, side by side. */
export async function runRecordWork(works: readonly RecordWork[], concurrencyMax: number): Promise<ChangesOutcome> {
  let next = 0;
  let failedFrom: number | undefined;
  const faults: unknown[] = [];
  const worker = async (): Promise<void> => {
    while (next < works.length) {
      const work = works[next]!;
      next += 1;
      try {
        await work.run();
      } catch (fault) {
        faults.push(fault);
        if (mayPass(fault)) failedFrom = Math.min(failedFrom ?? Infinity, ...work.of);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrencyMax, works.length) }, worker));
  return failedFrom === undefined ? { faults } : { failedFrom, faults };
}

/**
 * A batch by `handle`, which rejects when a record cannot even be read: then each half is handled alone, down to that record.
 * What was done before is done again, as when a batch comes twice.
 */
export async function handleInHalves(
  records: readonly ItemChangeRecord[],
  handle: (records: readonly ItemChangeRecord[]) => Promise<ChangesOutcome>,
): Promise<ChangesOutcome> {
  try {
    return await handle(records);
  } catch (fault) {
    if (mayPass(fault) || records.length <= 1)
      return mayPass(fault) ? { failedFrom: 0, faults: [fault] } : { faults: [fault] };
    const middle = Math.ceil(records.length / 2);
    const first = await handleInHalves(records.slice(0, middle), handle);
    const second = await handleInHalves(records.slice(middle), handle);
    return allOf(
      first,
      second.failedFrom === undefined ? second : { ...second, failedFrom: second.failedFrom + middle },
    );
  }
}

/** Never silent: what is given up is measured, and logged by whoever answers the stream. */
export function measureFaults(
  { meter }: Pick<ControllerDependencies, 'meter'>,
  outcome: ChangesOutcome,
): ChangesOutcome {
  const givenUp = outcome.faults.filter((fault) => !mayPass(fault)).length;
  if (givenUp > 0) meter.add(metric.RECORDS_GIVEN_UP, givenUp, 'Count', ALL_FUNCTIONS);
  return outcome;
}

export const allOf = (...outcomes: readonly ChangesOutcome[]): ChangesOutcome => {
  const failed = outcomes.flatMap(({ failedFrom }) => (failedFrom === undefined ? [] : [failedFrom]));
  const faults = outcomes.flatMap((outcome) => outcome.faults);
  return failed.length === 0 ? { faults } : { failedFrom: Math.min(...failed), faults };
};
