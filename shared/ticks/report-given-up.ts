import { ALL_FUNCTIONS, RECORDS_GIVEN_UP } from '../functions/tick-metrics.ts';
import type { WorkDependencies } from './dependencies.ts';
import type { ParkedRow } from './parked-store.ts';

/** Counts and logs works of a parked row that are not retried any more. */
export function reportGivenUp(
  { log, meter }: Pick<WorkDependencies, 'log' | 'meter'>,
  row: ParkedRow,
  { works, nowMs }: { readonly works: readonly string[]; readonly nowMs: number },
): void {
  meter.add(RECORDS_GIVEN_UP, 1, 'Count', ALL_FUNCTIONS);
  log.error('works of a stream record were given up', {
    object: row.id,
    works,
    tries: row.tries,
    ageSeconds: Math.round((nowMs - row.firstMs) / 1_000),
  });
}
