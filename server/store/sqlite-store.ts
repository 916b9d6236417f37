/** The tables in one SQLite file of one process (docs/decisions/0056-one-file.md). */
import { closeSync, fdatasync, statSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Clock } from '../../shared/clock.ts';
import { defined } from '../../shared/defined.ts';
import {
  checkSegment,
  type Item,
  type ItemKey,
  type ItemPosition,
  type ItemStore,
  type QueryPage,
  type QueryRequest,
  type ScanPage,
  type ScanRequest,
  StoreFault,
  type Write,
} from '../../shared/store/item-store.ts';
import {
  ARRIVAL_KEY,
  arrivalOf,
  FENCE_KEY,
  type Fence,
  type FenceState,
  fenceItem,
  fenceOf,
  isCluster,
  isInState,
} from '../../shared/store/move-rows.ts';
import { PageItems } from '../../shared/store/writes/page-items.ts';
import type { StoreChange } from '../../shared/store/writes/store-change.ts';
import { decideTransaction, decideWrite } from '../../shared/store/writes/write-decision.ts';
import { checkKey } from '../../shared/store/writes/written-item.ts';
import { Checkpoints } from './checkpoints.ts';
import type { FileCheck, RowCounts } from './file-work.ts';
import { FileWorker } from './file-worker.ts';
import { type CommittedChange, GroupCommit, type Touched } from './group-commit.ts';
import { ItemCache } from './item-cache.ts';
import { openDatabase } from './open-database.ts';
import { storeFaultOf } from './sqlite-fault.ts';
import { lockStore } from './store-lock.ts';
import { type PendingChange, TABLES, Tables } from './tables.ts';

export type { FileCheck, RowCounts } from './file-work.ts';
export type { CommittedChange } from './group-commit.ts';
export { StoreOpenError } from './store-open-error.ts';
export type { PendingChange } from './tables.ts';

const CACHE_BYTES = 32 * 1_024 * 1_024;
/** A page is read in parts of this size, with a turn of the event loop after each: heartbeats go on during a list. */
const ROWS_PER_TURN = 200;
const BYTES_PER_TURN = 128 * 1_024;
/** What the log may grow by during a backup. */
const BACKUP_LOG_BYTES_MAX = 1_024 * 1_024 * 1_024;
const MOVING = 'this cluster is being moved: writes are refused';
const NO_CLUSTER = 'it is the destination of another move, and was never started: it is no cluster';
/** Expired items deleted by one sweep, of each table. */
export const SWEPT_MAX = 200;

export interface SqliteStoreOptions {
  /** The database file. Its directory exists. */
  readonly file: string;
  /** Time to live passes by it. */
  readonly clock: Clock;
  /**
   * `full`: what was answered survives a power cut. `normal`: a power cut may undo the last seconds, a crash nothing.
   */
  readonly synchronous: 'full' | 'normal';
  /** Which consumers a change concerns: a row in `pending` for each, in the same transaction. */
  readonly consumersOf?: (change: StoreChange) => readonly string[];
  /** Called after the commit is durable, in commit order, with the changes of the group and their pending rows. */
  readonly onCommit?: (changes: readonly CommittedChange[]) => void;
  /** Bytes of the cache of decoded items. */
  readonly cacheBytes?: number;
  /** The most that a group waits for others to join it under load. Milliseconds. */
  readonly groupIntervalMsMax?: number;
  /** Replaces fdatasync, to imitate another disk. */
  readonly fdatasync?: (descriptor: number) => Promise<void>;
}

export interface StoreMetrics {
  readonly groups: number;
  readonly writes: number;
  /** Writes that failed because of the file or the disk, and whether the last group did. */
  readonly failedWrites: number;
  readonly isFailing: boolean;
  readonly waitingWrites: number;
  /** The least interval between groups at present. */
  readonly intervalMs: number;
  readonly syncMs: number;
  readonly syncMsMax: number;
  /** The longest turn of the event loop with a group. */
  readonly turnMsMax: number;
  readonly checkpoints: number;
  readonly failedCheckpoints: number;
  /** How long groups waited for checkpoints. */
  readonly heldMs: number;
  readonly heldMsMax: number;
  readonly logBytes: number;
  readonly fileBytes: number;
  readonly cacheHits: number;
  readonly cacheMisses: number;
  readonly cacheBytes: number;
}

export interface SqliteStore {
  readonly items: ItemStore;
  /** Changes that a consumer has not processed, the oldest first; after a restart. */
  pending(consumer: string, limit: number): readonly PendingChange[];
  /** Their rows are deleted with the next group. */
  processed(ids: readonly number[]): void;
  /** Deletes expired items, a bounded number. Returns how many. */
  sweepExpired(): Promise<number>;
  /** A copy of one moment, sound and durable when this resolves. Returns its rows. @throws StoreFault */
  backup(file: string): Promise<RowCounts>;
  /** Reads the whole file. @throws StoreFault */
  check(): Promise<FileCheck>;
  /** This store is the source of a move: it accepts no write. */
  fence(): Fence | undefined;
  /**
   * Durable when it resolves. Every write before it is, and none after it is accepted; undefined lifts it.
   *
   * @param expected the state of the present fence; undefined: there is none
   * @returns false when the present fence is another one, or in another state: nothing has changed
   * @throws StoreFault `rejected` for a store that is no cluster
   */
  setFence(fence: Fence | undefined, expected: FenceState | undefined): Promise<boolean>;
  metrics(): StoreMetrics;
  /** Cached items that differ from their rows; for tests. */
  wrongCacheEntries(): readonly string[];
  close(): Promise<void>;
}

/** @throws StoreOpenError */
export function openSqliteStore(options: SqliteStoreOptions): SqliteStore {
  const { file, clock, synchronous } = options;
  const lock = lockStore(file);
  let opened: ReturnType<typeof openDatabase>;
  try {
    opened = openDatabase(file);
  } catch (error) {
    lock.release();
    throw error;
  }
  const { database, walDescriptor } = opened;
  const cache = new ItemCache(options.cacheBytes ?? CACHE_BYTES);
  const tables = new Tables(database, cache);
  const worker = new FileWorker(file);
  const checkpoints = new Checkpoints(worker, () => groups);
  const sync = options.fdatasync ?? promisify(fdatasync);
  const groups = new GroupCommit({
    tables,
    recover: async () => {
      await worker.do({ kind: 'truncate' });
    },
    onAppended: (bytes) => checkpoints.onAppended(bytes),
    ...defined({
      consumersOf: options.consumersOf,
      onCommit: options.onCommit,
      intervalMsMax: options.groupIntervalMsMax,
    }),
    ...(synchronous === 'full' && { sync: () => sync(walDescriptor) }),
  });

  let fence = fenceOf(tables.read(FENCE_KEY));
  const refuseFenced = (): void => {
    if (fence !== undefined) throw new StoreFault('unreachable', MOVING, { retryable: true });
  };

  return {
    items: itemStore(tables, groups, refuseFenced),
    fence: () => fence,
    async setFence(next, expected) {
      try {
        return await groups.submit((read) => {
          const row = read(FENCE_KEY);
          if (!isInState(fenceOf(row), expected)) return { outcome: false, effects: [] };
          if (row === undefined && !isCluster(arrivalOf(read(ARRIVAL_KEY)))) {
            throw new StoreFault('rejected', NO_CLUSTER, { retryable: false });
          }
          const write: Write =
            next === undefined
              ? { kind: 'delete', key: FENCE_KEY }
              : { kind: 'put', key: FENCE_KEY, item: fenceItem(next) };
          const { effect } = decideWrite(write, row, {});
          // Requests behind this one in the same group are decided after it.
          fence = next;
          return { outcome: true, effects: [effect] };
        });
      } catch (error) {
        // Its transaction was undone, or is there and only its sync failed.
        fence = faultsOf(() => fenceOf(tables.read(FENCE_KEY)));
        throw error;
      }
    },
    pending: (consumer, limit) => faultsOf(() => tables.pendingOf(consumer, limit)),
    processed: (ids) => groups.processed(ids),
    sweepExpired: () => sweepExpired(tables, groups, clock, () => fence !== undefined),
    backup: (to) => worker.do({ kind: 'backup', to, logBytesMax: BACKUP_LOG_BYTES_MAX }),
    check: () => worker.do({ kind: 'check' }),
    metrics: () => metricsOf(file, cache, groups, checkpoints),
    wrongCacheEntries: () => tables.wrongCacheEntries(),
    async close() {
      await groups.close();
      await checkpoints.ended();
      // A backup that an exit cuts off would leave a part of a file, and its thread would read on without the lock.
      await worker.apartEnded();
      // The last connection that closes makes the checkpoint, on the event loop: here it has nothing left to do.
      await worker.do({ kind: 'truncate' }).catch(() => {});
      await worker.end();
      database.close();
      closeSync(walDescriptor);
      lock.release();
    },
  };
}

/** `refuseFenced`: throws what a write is answered with, in the order of the writes. */
function itemStore(tables: Tables, groups: GroupCommit, refuseFenced: () => void): ItemStore {
  /** The answer of a read waits for the group in flight if the read touches it. */
  const whenDurable = async <T>(read: () => T, isTouched: (touched: Touched) => boolean): Promise<T> => {
    const result = faultsOf(read);
    const durable = groups.durable(isTouched);
    if (durable !== undefined) await durable;
    return result;
  };
  return {
    async get(key) {
      checkKey(key);
      return whenDurable(
        () => tables.read(key),
        (touched) => touched.hasKey(key),
      );
    },

    async getMany(keys) {
      for (const key of keys) checkKey(key);
      const found: (Item | undefined)[] = [];
      for (let first = 0; first < keys.length; first += ROWS_PER_TURN) {
        if (first > 0) await turn();
        const part = keys.slice(first, first + ROWS_PER_TURN);
        const items = await whenDurable(
          () => part.map((key) => tables.read(key)),
          (touched) => part.some((key) => touched.hasKey(key)),
        );
        found.push(...items);
      }
      return found;
    },

    async query(request): Promise<QueryPage> {
      checkKey({ ...request, sk: request.beginsWith || 'any' });
      const { items, next } = await readPage(
        request,
        (after) => tables.rows(request, after?.sk ?? request.after),
        tables,
        (read) => whenDurable(read, (touched) => touched.hasPartition(request)),
      );
      return { items, ...defined({ next: next?.sk }) };
    },

    async scan(request): Promise<ScanPage> {
      checkSegment(request);
      const { items, next } = await readPage(
        request,
        (after) => tables.scan(request, after ?? request.after),
        tables,
        (read) => whenDurable(read, (touched) => touched.hasTable(request.table)),
      );
      return { items, ...defined({ next }) };
    },

    write: (write, wanted = {}) =>
      groups.submit((read) => {
        refuseFenced();
        const { outcome, effect } = decideWrite(write, read(write.key), wanted);
        return { outcome, effects: [effect] };
      }),

    transact: (writes) =>
      groups.submit((read) => {
        refuseFenced();
        const { outcome, effects } = decideTransaction(writes, read);
        return { outcome, effects: outcome.kind === 'written' ? effects : [] };
      }),
  };
}

/** Reads a page in parts. It is no snapshot across parts, as a page of DynamoDB is none. */
async function readPage(
  request: QueryRequest | ScanRequest,
  rowsAfter: (after: ItemPosition | undefined) => ReturnType<Tables['rows']>,
  tables: Tables,
  whenDurable: (read: () => PagePart) => Promise<PagePart>,
): Promise<{ readonly items: readonly Item[]; readonly next: ItemPosition | undefined }> {
  const page = new PageItems(request);
  for (let after: ItemPosition | undefined; ; await turn()) {
    const part = await whenDurable(() => readPart(page, rowsAfter(after), tables));
    if (part.kind !== 'more') return { items: page.items, next: part.kind === 'full' ? part.at : undefined };
    after = part.at;
  }
}

/** `full`: the page ends at this item and others follow. `more`: the part ended there. */
type PagePart = { readonly kind: 'full' | 'more'; readonly at: ItemPosition } | { readonly kind: 'end' };

function readPart(page: PageItems, rows: ReturnType<Tables['rows']>, tables: Tables): PagePart {
  const bytesMax = page.bytes + BYTES_PER_TURN;
  let count = 0;
  // Leaving the loop ends the statement, so no read stays open.
  for (const row of rows) {
    if (page.isFull) return { kind: 'full', at: page.last };
    if (count === ROWS_PER_TURN || page.bytes >= bytesMax) return { kind: 'more', at: page.last };
    page.add(tables.decoded(row), row.bytes);
    count += 1;
  }
  return { kind: 'end' };
}

async function sweepExpired(
  tables: Tables,
  groups: GroupCommit,
  clock: Clock,
  isFenced: () => boolean,
): Promise<number> {
  let swept = 0;
  for (const table of TABLES) {
    const nowSeconds = clock.nowMs() / 1_000;
    const keys = faultsOf(() => tables.due(table, nowSeconds, SWEPT_MAX));
    if (keys.length === 0) continue;
    // A write since then may have extended it.
    const isDue = (item: Item | undefined): boolean => typeof item?.['ttl'] === 'number' && item['ttl'] <= nowSeconds;
    swept += await groups.submit((read) => {
      // Behind a fence nothing works on the change, so it would stay with this store.
      if (isFenced()) return { outcome: 0, effects: [] };
      const effects = keys.flatMap((key: ItemKey) => {
        const before = read(key);
        return isDue(before) ? [{ key, before, after: undefined }] : [];
      });
      return { outcome: effects.length, effects };
    }, 'expired');
  }
  return swept;
}

/** @throws StoreFault */
function faultsOf<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw storeFaultOf(error);
  }
}

function metricsOf(file: string, cache: ItemCache, groups: GroupCommit, checkpoints: Checkpoints): StoreMetrics {
  const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const { counters } = groups;
  return {
    groups: counters.groups,
    writes: counters.writes,
    failedWrites: counters.refusedByFault,
    isFailing: groups.isFailing,
    waitingWrites: groups.waiting,
    intervalMs: groups.intervalMs,
    syncMs: counters.syncMs,
    syncMsMax: counters.syncMsMax,
    turnMsMax: counters.turnMsMax,
    checkpoints: checkpoints.counters.done,
    failedCheckpoints: checkpoints.counters.failed,
    heldMs: checkpoints.counters.heldMs,
    heldMsMax: checkpoints.counters.heldMsMax,
    logBytes: sizeOf(`${file}-wal`),
    fileBytes: sizeOf(file),
    cacheHits: cache.hits,
    cacheMisses: cache.misses,
    cacheBytes: cache.bytes,
  };
}
