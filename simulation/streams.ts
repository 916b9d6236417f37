/**
 * The tables' streams: changes of `objects` and `health` that pass the filters of the event source mappings
 * (test/scenario holds them against cdk/lib/streams.ts), delivered in batches until nothing new comes of it.
 */

import { passesHealthFilter, passesObjectFilter, passesWorkloadFilter } from '../server/changes/change-filters.ts';
import type { ChangesOutcome, FleetControllers } from '../server/fleet-controllers.ts';
import type { ItemChange } from '../shared/store/memory/item-changes.ts';
import type { MemoryItemStore } from '../shared/store/memory/item-store.ts';

const BATCH_RECORDS_MAX = 100;
/** Deliveries of one batch, as many as the mapping allows. */
const DELIVERIES_MAX = 11;
/** Batches in one instant: a fleet of 100,000 has far fewer. */
const BATCHES_MAX = 20_000;

export class StreamsFault extends AggregateError {
  override readonly name = 'StreamsFault';
}

export interface Streams {
  /** @throws StreamsFault when a batch fails on every delivery */
  drain(): Promise<void>;
  /** Changes up to here were delivered. */
  readonly delivered: { readonly objects: number; readonly health: number; readonly workloads: number };
}

export function createStreams(
  record: MemoryItemStore,
  controllers: Pick<FleetControllers, 'onObjectRecords' | 'onHealthRecords' | 'onWorkloadRecords'>,
): Streams {
  const delivered = { objects: 0, health: 0, workloads: 0 };

  async function deliver(
    source: 'objects' | 'health' | 'workloads',
    passes: (change: ItemChange) => boolean,
    handle: (records: readonly ItemChange[]) => Promise<ChangesOutcome>,
  ): Promise<number> {
    const changes = record.changes(source === 'health' ? 'health' : 'objects', delivered[source]);
    const wanted = changes.filter(passes);
    for (let first = 0; first < wanted.length; first += BATCH_RECORDS_MAX) {
      await deliverBatch(wanted.slice(first, first + BATCH_RECORDS_MAX), handle);
    }
    delivered[source] = changes.at(-1)?.sequence ?? delivered[source];
    return Math.ceil(wanted.length / BATCH_RECORDS_MAX);
  }

  return {
    delivered,
    async drain() {
      for (let batches = 0; batches < BATCHES_MAX; ) {
        const now =
          (await deliver('health', passesHealthFilter, (records) => controllers.onHealthRecords(records))) +
          (await deliver('objects', passesObjectFilter, (records) => controllers.onObjectRecords(records))) +
          (await deliver('workloads', passesWorkloadFilter, (records) => controllers.onWorkloadRecords(records)));
        if (now === 0) return;
        batches += now;
      }
      throw new StreamsFault([], 'the streams do not come to rest');
    },
  };
}

async function deliverBatch(
  batch: readonly ItemChange[],
  handle: (records: readonly ItemChange[]) => Promise<ChangesOutcome>,
): Promise<void> {
  let rest = batch;
  let faults: readonly unknown[] = [];
  for (let delivery = 1; delivery <= DELIVERIES_MAX; delivery += 1) {
    const outcome = await handle(rest);
    if (outcome.failedFrom === undefined) return;
    faults = outcome.faults;
    rest = rest.slice(outcome.failedFrom);
  }
  throw new StreamsFault(faults, 'changes could not be processed on any delivery');
}
