/**
 * Writes in groups. One group is in flight: its requests are decided in order of arrival and applied in one
 * transaction, in one turn of the event loop. Then its commit is made durable, its answers leave, and the next group
 * begins.
 *
 * Why an answer that leaves is durable, with `synchronous = NORMAL` and an fdatasync of our own:
 *
 * - COMMIT appends the frames of the transaction to the write-ahead log. With NORMAL it does not sync; that is all that
 *   FULL adds (sqlite.org/pragma.html, "PRAGMA synchronous": in WAL mode FULL syncs the log after each commit). The
 *   fdatasync syncs the same file with the frames in it, so after it the state is that of a COMMIT with FULL. It is
 *   called on a descriptor of our own: a sync is of the file, not of the descriptor. Only the log has one: closing a
 *   descriptor of the database file would drop the locks of SQLite (sqlite.org/howtocorrupt.html, 2.2).
 * - Recovery reads frames as long as salt and running checksum fit, up to the last commit (sqlite.org/walformat.html).
 *   The next group writes behind the frames of this one, and only after its sync. So what a power cut tears is behind
 *   every group that was answered.
 * - A checkpoint syncs the log, copies pages into the database file and syncs that file, in this order, also with
 *   NORMAL (sqlite.org/wal.html, "Performance Considerations"). The log begins again from its start only when all of it
 *   has been copied. The first frame after that has a new salt, and SQLite syncs the new header before it: old frames
 *   never follow a new header. Every answered group is then in the synced database file, or in synced frames.
 * - A file is durable under its name when its directory is synced: open-database.ts does that before the first group.
 *   It also syncs what it finds in the log, because a killed process may have committed without a sync.
 * - When an fdatasync fails, the kernel may mark pages as clean that it did not write, and a second fdatasync says
 *   nothing. The group is then durable only by a whole checkpoint: it writes the pages to the other file, and syncs
 *   that. Until one succeeds no further group begins.
 *
 * Reads are of the newest committed state, on the same connection. One that touches what the group in flight changed
 * waits for it: no answer has a state that a power cut can undo. That is linearizable. A write takes effect at its
 * commit, a read when it reads, and both are answered later; after an answer every read finds it. The alternative,
 * reads of the last durable state, needs the old images merged into every page, for answers that are older by one sync.
 */
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { type Item, type ItemKey, keyText, StoreFault } from '../../shared/store/item-store.ts';
import { changeOf, type StoreChange } from '../../shared/store/writes/store-change.ts';
import type { WriteEffect } from '../../shared/store/writes/write-decision.ts';
import { nextIntervalMs } from './group-pace.ts';
import { storeFaultOf } from './sqlite-fault.ts';
import type { Tables } from './tables.ts';

/** A turn of the event loop with a group ends after so long. Milliseconds. */
const TURN_MS_MAX = 8;
/** Items between two looks at the time: a request may have a hundred. */
const ITEMS_PER_LOOK = 8;
/** Requests that may wait. A process that is slower than its clients must say so. */
const WAITING_MAX = 20_000;
/** How long rows of processed changes may wait for a group with writes. Milliseconds. */
const PROCESSED_WAIT_MS = 50;
/** When they are tried again after a transaction that failed. Milliseconds. */
const PROCESSED_RETRY_MS = 1_000;
/** Bytes of a page of the log with the header of its frame. */
const FRAME_BYTES = 4_120;
const PAGE_BYTES = 4_096;

/** A change that is durable, with its rows for consumers. */
export interface CommittedChange extends StoreChange {
  readonly pending: readonly { readonly consumer: string; readonly id: number }[];
}

export interface Decided<Outcome> {
  readonly outcome: Outcome;
  readonly effects: readonly WriteEffect[];
}

interface Request {
  readonly cause: StoreChange['cause'];
  /** Throws what the request is answered with. Nothing has then been written. */
  decide(read: (key: ItemKey) => Item | undefined): Decided<unknown>;
  resolve(outcome: unknown): void;
  reject(fault: unknown): void;
}

export interface GroupOptions {
  readonly tables: Tables;
  /** Makes the log durable. Absent: the operating system does it some time later. */
  readonly sync?: () => Promise<void>;
  /** After a sync that failed: a whole checkpoint. Rejects if it cannot. */
  readonly recover: () => Promise<void>;
  /** The most that a group waits for others to join it. Milliseconds. */
  readonly intervalMsMax?: number;
  readonly consumersOf?: (change: StoreChange) => readonly string[];
  readonly onCommit?: (changes: readonly CommittedChange[]) => void;
  /** After each group, with what it appended to the log: about as many bytes. */
  readonly onAppended: (bytes: number) => void;
}

/** Answers and changes of one commit. */
interface Group {
  readonly answers: (() => void)[];
  readonly requests: Request[];
  readonly changes: CommittedChange[];
  readonly touched: Touched;
  /** Settles when the group is durable, or known not to be. */
  readonly durable: Promise<void>;
  settle(fault?: unknown): void;
}

export class GroupCommit {
  readonly counters = { groups: 0, writes: 0, refusedByFault: 0, syncMs: 0, syncMsMax: 0, turnMsMax: 0 };
  readonly #options: GroupOptions;
  #waiting: Request[] = [];
  #processed: number[] = [];
  #processedTimer: NodeJS.Timeout | undefined;
  /** Committed, not yet durable. */
  #inFlight: Group | undefined;
  /** Changes of a group after a failed sync, until a checkpoint makes them durable. */
  #unsynced: CommittedChange[] | undefined;
  #running: Promise<void> | undefined;
  readonly #interludes: (() => Promise<void>)[] = [];
  #isClosed = false;
  #isFailing = false;
  #intervalMs = 0;
  #beganAtMs = 0;

  constructor(options: GroupOptions) {
    this.#options = options;
  }

  /** The last group failed because of the file or the disk. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get intervalMs(): number {
    return this.#intervalMs;
  }

  submit<Outcome>(
    decide: (read: (key: ItemKey) => Item | undefined) => Decided<Outcome>,
    cause: StoreChange['cause'] = 'write',
  ): Promise<Outcome> {
    return new Promise<Outcome>((resolve, reject) => {
      if (this.#isClosed) return reject(fault('unreachable', 'the store is closed'));
      if (this.#waiting.length >= WAITING_MAX) return reject(fault('throttled', 'too many writes are waiting'));
      this.#waiting.push({ cause, decide, resolve: resolve as (outcome: unknown) => void, reject });
      this.#wake();
    });
  }

  /** Deletes rows of changes with the next group, or soon without one. */
  processed(ids: readonly number[]): void {
    if (ids.length === 0 || this.#isClosed) return;
    this.#processed.push(...ids);
    if (this.#running === undefined) this.#wakeLater(PROCESSED_WAIT_MS);
  }

  /** What a read that touches this must wait for. */
  durable(isTouched: (touched: Touched) => boolean): Promise<void> | undefined {
    return this.#inFlight !== undefined && isTouched(this.#inFlight.touched) ? this.#inFlight.durable : undefined;
  }

  /** Runs between two groups: nothing is in flight, and no group begins before it ends. */
  between<T>(run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#interludes.push(() => run().then(resolve, reject));
      this.#wake();
    });
  }

  /** Refuses further writes and completes those that wait. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#processedTimer);
    if (this.#processed.length > 0) this.#wake();
    // A group that failed may leave others behind it.
    while (this.#running !== undefined) await this.#running;
  }

  #wake(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#waiting.length > 0 || this.#interludes.length > 0) this.#wake();
      else if (this.#processed.length > 0) this.#wakeLater(PROCESSED_RETRY_MS);
    });
  }

  #wakeLater(milliseconds: number): void {
    this.#processedTimer ??= setTimeout(() => this.#wake(), milliseconds).unref();
  }

  async #run(): Promise<void> {
    clearTimeout(this.#processedTimer);
    this.#processedTimer = undefined;
    while (this.#waiting.length + this.#processed.length + this.#interludes.length > 0) {
      for (let next = this.#interludes.shift(); next !== undefined; next = this.#interludes.shift()) await next();
      await this.#untilNextGroup();
      if (!(await this.#isRecovered())) return;
      const group = this.#commit();
      if (group === 'failed') return;
      if (group !== undefined) await this.#makeDurable(group);
    }
  }

  async #untilNextGroup(): Promise<void> {
    const waitMs = this.#beganAtMs + this.#intervalMs - performance.now();
    // At least the writes of this turn share a group.
    await (waitMs > 0 && !this.#isClosed ? wait(waitMs) : turn());
    this.#beganAtMs = performance.now();
  }

  /** After a failed sync nothing is written before a checkpoint has succeeded. */
  async #isRecovered(): Promise<boolean> {
    if (this.#unsynced === undefined) return true;
    try {
      await this.#options.recover();
    } catch (error) {
      this.#refuse(this.#waiting.splice(0), storeFaultOf(error));
      return false;
    }
    const changes = this.#unsynced;
    this.#unsynced = undefined;
    this.#inFlight = undefined;
    this.#publish(changes);
    return true;
  }

  /** One transaction. Returns what must become durable; undefined if nothing changed. */
  #commit(): Group | undefined | 'failed' {
    const { tables } = this.#options;
    const group = newGroup();
    const processed = this.#processed;
    let appended = 0;
    let taken = 0;
    let unseen = 0;
    let isBegun = false;
    const begin = (): void => {
      if (isBegun) return;
      tables.begin();
      isBegun = true;
    };
    try {
      if (processed.length > 0) {
        begin();
        tables.deletePending(processed);
        appended += FRAME_BYTES;
      }
      while (taken < this.#waiting.length) {
        if (unseen >= ITEMS_PER_LOOK) {
          if (performance.now() - this.#beganAtMs > TURN_MS_MAX) break;
          unseen = 0;
        }
        const request = this.#waiting[taken]!;
        taken += 1;
        group.requests.push(request);
        const decided = decisionOf(request, tables);
        unseen += 'fault' in decided ? 1 : Math.max(1, decided.effects.length);
        if ('fault' in decided) {
          group.answers.push(() => request.reject(decided.fault));
          continue;
        }
        group.answers.push(() => request.resolve(decided.outcome));
        for (const effect of decided.effects) {
          const change =
            effect.after === effect.before
              ? undefined
              : changeOf(effect.key, effect.before, effect.after, request.cause);
          if (change === undefined) continue;
          begin();
          appended += this.#apply(change, group);
        }
      }
      if (isBegun) tables.commit();
    } catch (error) {
      this.#undo(group, taken, error);
      return 'failed';
    }
    this.#waiting.splice(0, taken);
    this.#processed = [];
    this.counters.writes += taken;
    this.counters.turnMsMax = Math.max(this.counters.turnMsMax, performance.now() - this.#beganAtMs);
    this.#intervalMs = nextIntervalMs(this.#intervalMs, taken, this.#options.intervalMsMax);
    if (isBegun) {
      this.counters.groups += 1;
      this.#options.onAppended(appended);
      return group;
    }
    for (const answer of group.answers) answer();
    return undefined;
  }

  /** Returns about how many bytes the log grows by. */
  #apply(change: StoreChange, { touched, changes }: Group): number {
    const { tables, consumersOf } = this.#options;
    touched.add(change.key);
    const bytes = tables.write(change.key, change.newImage);
    const consumers = consumersOf?.(change) ?? [];
    const ids = tables.addPending(change, consumers);
    changes.push({ ...change, pending: consumers.map((consumer, index) => ({ consumer, id: ids[index]! })) });
    const pages = consumers.length === 0 ? bytes / PAGE_BYTES : 1 + (bytes * (1 + 2 * consumers.length)) / PAGE_BYTES;
    return FRAME_BYTES * (1 + Math.floor(pages));
  }

  /** Nothing of the transaction remains, so every request of it fails: an outcome may rest on another's write. */
  #undo({ requests, touched }: Group, taken: number, error: unknown): void {
    const { tables } = this.#options;
    try {
      tables.rollBack();
    } finally {
      tables.forget(touched.keys);
      this.#waiting.splice(0, taken);
      this.#refuse(requests, storeFaultOf(error));
    }
  }

  #refuse(requests: readonly Request[], reason: Error): void {
    this.#isFailing = true;
    this.counters.refusedByFault += requests.length;
    for (const request of requests) request.reject(reason);
  }

  async #makeDurable(group: Group): Promise<void> {
    const { sync } = this.#options;
    if (sync !== undefined) {
      this.#inFlight = group;
      try {
        await this.#timed(sync);
      } catch {
        try {
          await this.#options.recover();
        } catch (error) {
          return this.#onSyncFailed(group, error);
        }
      }
      this.#inFlight = undefined;
    }
    group.settle();
    this.#isFailing = false;
    // Before the answers: a caller that has one finds it published.
    this.#publish(group.changes);
    for (const answer of group.answers) answer();
  }

  async #timed(sync: () => Promise<void>): Promise<void> {
    const startedMs = performance.now();
    await sync();
    const tookMs = performance.now() - startedMs;
    this.counters.syncMs += tookMs;
    this.counters.syncMsMax = Math.max(this.counters.syncMsMax, tookMs);
  }

  /** The group stays in flight: what it wrote is visible to no read until a checkpoint has succeeded. */
  #onSyncFailed(group: Group, error: unknown): void {
    const reason = storeFaultOf(error);
    this.#unsynced = [...group.changes];
    group.settle(reason);
    this.#refuse(group.requests, reason);
  }

  /** A fault of the receiver is none of the store: it is one that no code handles. */
  #publish(changes: readonly CommittedChange[]): void {
    const { onCommit } = this.#options;
    if (onCommit !== undefined && changes.length > 0) queueMicrotask(() => onCommit(changes));
  }
}

const fault = (code: StoreFault['code'], message: string): StoreFault =>
  new StoreFault(code, message, { retryable: true });

function decisionOf(request: Request, tables: Tables): Decided<unknown> | { readonly fault: unknown } {
  try {
    return request.decide((key) => tables.read(key));
  } catch (error) {
    return { fault: storeFaultOf(error) };
  }
}

function newGroup(): Group {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // A group may fail without a reader that waits for it.
  promise.catch(() => {});
  return {
    answers: [],
    requests: [],
    changes: [],
    touched: new Touched(),
    durable: promise,
    settle: (reason) => (reason === undefined ? resolve() : reject(reason)),
  };
}

/** What a group changed: items, partitions and tables. */
export class Touched {
  readonly keys = new Set<string>();
  readonly #partitions = new Set<string>();
  readonly #tables = new Set<string>();

  add(key: ItemKey): void {
    this.keys.add(keyText(key));
    this.#partitions.add(partitionText(key));
    this.#tables.add(key.table);
  }

  hasKey(key: ItemKey): boolean {
    return this.keys.has(keyText(key));
  }

  hasPartition(partition: Pick<ItemKey, 'table' | 'pk'>): boolean {
    return this.#partitions.has(partitionText(partition));
  }

  hasTable(table: ItemKey['table']): boolean {
    return this.#tables.has(table);
  }
}

const partitionText = ({ table, pk }: Pick<ItemKey, 'table' | 'pk'>): string => `${table} ${pk}`;
