/**
 * The streams of the tables. Records of a shard are delivered in order; between shards there is no order. A failed
 * batch is delivered again from its first failed record on. If the process was killed, the whole batch is delivered
 * again.
 */
import type { FunctionName } from '../../functions/function-list.ts';
import { passesHealthFilter, passesObjectFilter, passesWorkloadFilter } from '../../server/changes/change-filters.ts';
import type { TimedChange } from '../recent-changes.ts';
import { hashOf } from '../seeded-random.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';
import type { Functions } from './processes.ts';

const SHARDS = 3;
const BATCH_RECORDS_MAX = 100;
/** Time from a write to the delivery of its batch. Milliseconds. */
const PICKED_UP_MIN_MS = 20;
const PICKED_UP_MAX_MS = 200;
const LATE_MAX_MS = 30_000;
/** A late batch is delivered within this time after the end of the fault. */
const AFTER_FAULT_MS = 2_000;
const RETRY_AFTER_MS = 500;
/** Retries of a record before it is dropped, as deployed (cdk/lib/streams.ts). */
const RETRIES_MAX = 10;
const DUPLICATE_AFTER_MAX_MS = 5_000;

export interface FaultyStreams {
  /** Delivers new changes. */
  feed(changes: readonly TimedChange[]): void;
}

/** Readers of the streams. */
type Reader = 'health-stream' | 'object-stream' | 'workloads';

interface Shard {
  readonly reader: Reader;
  readonly records: TimedChange[];
  isPolled: boolean;
}

/** Random numbers of some readers, and of the faults of their batches. */
interface Chance {
  readonly plan: FaultPlan;
  readonly fraction: () => number;
}

export function faultyStreams(options: {
  readonly functions: Functions;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  readonly onFault: (name: FunctionName, faults: readonly unknown[]) => void;
  /** Whether records are dropped after RETRIES_MAX. Faults of the tables may last longer than all retries. */
  readonly mayDrop: () => boolean;
  /** The fault of the second reader of `objects`. Absent: it receives nothing. */
  readonly workloads?: Chance;
}): FaultyStreams {
  const { functions, time, onFault, mayDrop } = options;
  const shards = new Map<string, Shard>();
  const chanceOf = (reader: Reader): Chance => (reader === 'workloads' ? options.workloads! : options);

  function delayMs({ plan, fraction }: Chance): number {
    const plain = PICKED_UP_MIN_MS + fraction() * (PICKED_UP_MAX_MS - PICKED_UP_MIN_MS);
    if (!plan.strikes('lateStreams', 0.5)) return plain;
    const overAfterMs = plan.last('lateStreams')!.untilMs - time.nowMs() + AFTER_FAULT_MS;
    return plain + Math.min(overAfterMs, plan.fraction('lateStreams') * LATE_MAX_MS);
  }

  async function deliver(shard: Shard, batch: readonly TimedChange[]): Promise<readonly TimedChange[]> {
    const name = shard.reader;
    const outcome = await functions.invoke(name, '', ({ controllers }) => {
      if (name === 'workloads') return controllers.onWorkloadRecords(batch);
      return name === 'health-stream' ? controllers.onHealthRecords(batch) : controllers.onObjectRecords(batch);
    });
    if (outcome.kind === 'killed') return batch;
    if (outcome.kind === 'failed') {
      onFault(name, [outcome.error]);
      return batch;
    }
    const { failedFrom, faults, postponed } = outcome.value;
    if (faults.length + postponed.length > 0) onFault(name, [...faults, ...postponed]);
    return failedFrom === undefined ? [] : batch.slice(failedFrom);
  }

  async function poll(shard: Shard): Promise<void> {
    const chance = chanceOf(shard.reader);
    const { plan } = chance;
    await time.sleep(delayMs(chance));
    /** The first record of the last failed batch, and how often it has failed. */
    let failing: { readonly record: TimedChange; count: number } | undefined;
    while (shard.records.length > 0) {
      const isSplit = plan.strikes('splitBatches', 0.8);
      const most = isSplit ? 1 + Math.floor(plan.fraction('splitBatches') * 3) : BATCH_RECORDS_MAX;
      const batch = shard.records.splice(0, most);
      const rest = await deliver(shard, batch);
      const [first] = rest;
      if (first !== undefined) {
        if (failing?.record !== first) failing = { record: first, count: 0 };
        failing.count += 1;
        const isDropped = mayDrop() && failing.count > RETRIES_MAX;
        shard.records.unshift(...rest.slice(isDropped ? 1 : 0));
        await time.sleep(RETRY_AFTER_MS);
      } else if (plan.strikes('duplicateBatches', 0.4)) {
        // A duplicate delivery: the same batch, possibly after newer ones.
        time.after(plan.fraction('duplicateBatches') * DUPLICATE_AFTER_MAX_MS, () => void again(shard, batch));
      }
      if (shard.records.length > 0) await time.sleep(delayMs(chance));
    }
    shard.isPolled = false;
  }

  async function again(shard: Shard, batch: readonly TimedChange[]): Promise<void> {
    await deliver(shard, batch);
  }

  function add(reader: Reader, change: TimedChange): void {
    const id = `${reader} ${hashOf(change.key.pk) % SHARDS}`;
    let shard = shards.get(id);
    if (shard === undefined) {
      shard = { reader, records: [], isPolled: false };
      shards.set(id, shard);
    }
    shard.records.push(change);
    if (shard.isPolled) return;
    shard.isPolled = true;
    void poll(shard);
  }

  return {
    feed(changes) {
      for (const change of changes) {
        const { table } = change.key;
        if (table === 'health' && passesHealthFilter(change)) add('health-stream', change);
        if (table !== 'objects') continue;
        if (passesObjectFilter(change)) add('object-stream', change);
        if (options.workloads !== undefined && passesWorkloadFilter(change)) add('workloads', change);
      }
    },
  };
}
