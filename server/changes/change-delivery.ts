/**
 * Delivers committed changes to the functions that receive them, as the streams of the tables do on AWS: in batches, in
 * the order of the commits, at least once. A change is a row of `pending` until its function has processed it, written
 * by the transaction of the change itself. So a crash between commit and work loses nothing: the rows are read at the
 * next start.
 *
 * Memory: a lane keeps at most QUEUE_CHANGES_MAX changes. When more are committed than it processes, it drops what is
 * new and reads the rows when it has caught up.
 *
 * A batch that fails is delivered again, as often as AWS does by default settings of the mappings. After that the
 * change that fails is given up and reported: the sweeps of the controllers and parked rows do its work
 * (item-change.ts).
 */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import type { Log, Meter } from '../../shared/observability/log.ts';
import type { ChangesOutcome, ItemChangeRecord } from '../../shared/ticks/item-change.ts';

const BATCH_CHANGES_MAX = 100;
const QUEUE_CHANGES_MAX = 10_000;
/** Rows that are read at once: heartbeats wait meanwhile, some 15 ms. */
const READ_CHANGES_MAX = 1_000;
const DELIVERIES_MAX = 11;
/** Before another delivery of a batch. */
const REPEATS: Backoff = { firstMs: 100, limitMs: 10_000 };

export const CHANGES_GIVEN_UP = 'changes_given_up';

export interface PendingChange {
  readonly id: number;
  readonly change: ItemChangeRecord;
}

/** The rows of changes that are not processed. */
export interface PendingChanges {
  /** The oldest changes of this consumer, in the order of their commits. */
  pending(consumer: string, limit: number): readonly PendingChange[];
  /** Deletes rows, with the next commit. */
  processed(ids: readonly number[]): void;
}

export interface DeliveryOptions {
  readonly changes: PendingChanges;
  readonly consumers: Readonly<Record<string, (records: readonly ItemChangeRecord[]) => Promise<ChangesOutcome>>>;
  /** Ends early, in whatever way, when the signal is aborted. */
  readonly pause: (milliseconds: number, stopped: AbortSignal) => Promise<unknown>;
  readonly log: Log;
  readonly meter: Meter;
}

export interface ChangeDelivery {
  /** A change was committed. */
  offer(consumer: string, change: PendingChange): void;
  /** Begins, with the rows of an earlier process first; also after a stop. */
  start(): void;
  /** Ends after the batches that are being processed. */
  stop(): Promise<void>;
  /** Changes in memory that are not processed, and whether more wait in the table only. */
  waiting(): { readonly changes: number; readonly isBehind: boolean };
}

interface Lane {
  readonly consumer: string;
  queue: PendingChange[];
  /** What is left of the batch that is being processed. A delivery that starts again continues with it. */
  batch: readonly PendingChange[];
  /** Ids grow with the commits. The last that was read from the rows, and the last that was processed. */
  readThrough: number;
  doneThrough: number;
  /** Rows exist that are not in the queue. */
  isBehind: boolean;
  running: Promise<void> | undefined;
}

const newLane = (consumer: string): Lane => ({
  consumer,
  queue: [],
  batch: [],
  readThrough: 0,
  doneThrough: 0,
  isBehind: true,
  running: undefined,
});

export function changeDelivery({ changes, consumers, pause, log, meter }: DeliveryOptions): ChangeDelivery {
  const lanes = new Map<string, Lane>(Object.keys(consumers).map((consumer) => [consumer, newLane(consumer)]));
  let isOpen = false;
  let stopped = new AbortController();

  const pauseUnlessStopped = (milliseconds: number): Promise<unknown> =>
    pause(milliseconds, stopped.signal).catch(() => {});

  /** The next changes. Empty: there are none now. */
  function take(lane: Lane): readonly PendingChange[] {
    if (lane.queue.length === 0 && lane.isBehind) {
      const rows = changes.pending(lane.consumer, READ_CHANGES_MAX);
      lane.isBehind = rows.length === READ_CHANGES_MAX;
      lane.readThrough = Math.max(lane.readThrough, rows.at(-1)?.id ?? 0);
      // The row of a processed change exists until the next commit.
      lane.queue = rows.filter(({ id }) => id > lane.doneThrough);
    }
    return lane.queue.splice(0, BATCH_CHANGES_MAX);
  }

  async function processBatch(lane: Lane): Promise<void> {
    const { consumer } = lane;
    const finish = (done: readonly PendingChange[]): void => {
      changes.processed(done.map(({ id }) => id));
      lane.doneThrough = done.at(-1)?.id ?? lane.doneThrough;
    };
    for (let delivery = 1; lane.batch.length > 0 && isOpen; delivery += 1) {
      const outcome = await handled(consumer, lane.batch);
      const done = outcome.failedFrom ?? lane.batch.length;
      finish(lane.batch.slice(0, done));
      if (done > 0) delivery = 1;
      lane.batch = lane.batch.slice(done);
      if (lane.batch.length === 0) return;
      if (delivery < DELIVERIES_MAX) {
        await pauseUnlessStopped(backoffMs(REPEATS, delivery - 1));
        continue;
      }
      const [failed, ...others] = lane.batch;
      meter.add(CHANGES_GIVEN_UP, 1, 'Count');
      log.error('a change could not be processed', {
        consumer,
        key: failed!.change.key,
        causes: outcome.faults.slice(0, 5).map(String),
      });
      finish([failed!]);
      lane.batch = others;
      delivery = 0;
    }
  }

  async function handled(consumer: string, batch: readonly PendingChange[]): Promise<ChangesOutcome> {
    try {
      return await consumers[consumer]!(batch.map(({ change }) => change));
    } catch (fault) {
      return { failedFrom: 0, faults: [fault], postponed: [] };
    }
  }

  async function run(lane: Lane): Promise<void> {
    // The other changes of the same commit join the batch.
    await Promise.resolve();
    while (isOpen) {
      try {
        if (lane.batch.length === 0) lane.batch = take(lane);
        if (lane.batch.length === 0 && !lane.isBehind) return;
        if (lane.batch.length === 0) await pauseUnlessStopped(REPEATS.firstMs);
        await processBatch(lane);
      } catch (error) {
        // Its rows cannot be read or deleted now. All are read again then: in order.
        lane.queue = [];
        lane.batch = [];
        lane.isBehind = true;
        log.error('pending changes could not be read', { consumer: lane.consumer, error });
        await pauseUnlessStopped(REPEATS.limitMs);
      }
    }
  }

  function wake(lane: Lane): void {
    if (!isOpen || lane.running !== undefined) return;
    lane.running = run(lane).finally(() => {
      lane.running = undefined;
      if (lane.queue.length > 0) wake(lane);
    });
  }

  return {
    offer(consumer, change) {
      const lane = lanes.get(consumer);
      // A row may be read before its commit is reported. Delivered twice, an older change would follow a newer one.
      if (lane === undefined || change.id <= lane.readThrough) return;
      if (lane.isBehind || lane.queue.length >= QUEUE_CHANGES_MAX) lane.isBehind = true;
      else lane.queue.push(change);
      wake(lane);
    },
    start() {
      isOpen = true;
      stopped = new AbortController();
      for (const lane of lanes.values()) wake(lane);
    },
    async stop() {
      isOpen = false;
      stopped.abort();
      await Promise.all([...lanes.values()].map(({ running }) => running));
    },
    waiting() {
      const all = [...lanes.values()];
      return {
        changes: all.reduce((sum, { queue, batch }) => sum + queue.length + batch.length, 0),
        isBehind: isOpen && all.some((lane) => lane.isBehind),
      };
    },
  };
}
