/** A change of one item, as a table's stream tells it: at least once, in order for each item. */
import type { Item } from '../../ports/item-store.ts';

export interface ItemChangeRecord {
  readonly type: 'INSERT' | 'MODIFY' | 'REMOVE';
  readonly key: { readonly pk: string; readonly sk: string };
  readonly oldImage?: Item;
  readonly newImage?: Item;
}

export interface ChangesOutcome {
  /** Position of the first record that could not be dealt with; all from there on are to be sent again. */
  readonly failedFrom?: number;
  readonly faults: readonly unknown[];
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
        failedFrom = Math.min(failedFrom ?? Infinity, ...work.of);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrencyMax, works.length) }, worker));
  return failedFrom === undefined ? { faults } : { failedFrom, faults };
}

export const allOf = (...outcomes: readonly ChangesOutcome[]): ChangesOutcome => {
  const failed = outcomes.flatMap(({ failedFrom }) => (failedFrom === undefined ? [] : [failedFrom]));
  const faults = outcomes.flatMap((outcome) => outcome.faults);
  return failed.length === 0 ? { faults } : { failedFrom: Math.min(...failed), faults };
};
