/**
 * The tables as one process sees them: every call lasts some virtual time and may be refused, lost or the last thing
 * the process does. Stale are only reads that were asked for as eventually consistent.
 */
import {
  compareKeys,
  type Item,
  type ItemStore,
  type QueryPage,
  type QueryRequest,
  type ScanPage,
  type ScanRequest,
  StoreFault,
  type TransactOutcome,
  type Write,
  type WriteOptions,
  type WriteOutcome,
} from '../../shared/store/item-store.ts';
import { segmentOf } from '../../shared/store/writes/page-items.ts';
import type { RecentChanges, TimedChange } from '../recent-changes.ts';
import { never, type VirtualTime } from '../virtual-time.ts';
import { type FaultPlan, FROZEN_MAX_MS } from './catalogue.ts';
import type { Process } from './processes.ts';

/** Duration of a call. Milliseconds. */
const CALL_MIN_MS = 1;
const CALL_MAX_MS = 8;
const SLOW_CALL_MAX_MS = 3_000;
/** Answers that never come are given up after so long. */
const TIMEOUT_MS = 1_000;
const STALE_MAX_MS = 3_000;
const SHARES = {
  throttle: 0.3,
  timeout: 0.15,
  resend: 0.15,
  contention: 0.3,
  slowStore: 0.15,
  staleReads: 0.9,
  freeze: 0.05,
};

export interface StoreOptions {
  readonly tables: ItemStore;
  readonly recent: RecentChanges;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  /** Called before an access to the tables, with its process. */
  readonly onEffect: (by: Process) => void;
}

export function faultyStore(process: Process, options: StoreOptions): ItemStore {
  const { tables, recent, time, plan, fraction, onEffect } = options;

  /** `run` does its work at one moment; answers after it, or not. */
  function call<T>(isWrite: boolean, run: () => Promise<T>): Promise<T> {
    if (process.isDead()) return never();
    const death = process.beforeCall();
    if (death === 'before') return never();
    let delayMs = CALL_MIN_MS + fraction() * (CALL_MAX_MS - CALL_MIN_MS);
    if (plan.strikes('slowStore', SHARES.slowStore)) delayMs = plan.fraction('slowStore') * SLOW_CALL_MAX_MS;
    if (death === undefined && plan.strikes('throttle', SHARES.throttle)) {
      return failing(delayMs, () => new StoreFault('throttled', 'simulated throttling', { retryable: true }));
    }
    const isLost = death === undefined && plan.strikes('timeout', SHARES.timeout);
    const happens = !isLost || (isWrite && plan.fraction('timeout') < 0.5);
    // Frozen before the request is sent, or before its answer is read.
    let thawedAfterMs = plan.strikes('freeze', SHARES.freeze) ? plan.fraction('freeze') * FROZEN_MAX_MS : 0;
    if (thawedAfterMs > 0 && plan.fraction('freeze') < 0.5) {
      delayMs += thawedAfterMs;
      thawedAfterMs = 0;
    }
    return new Promise((resolve, reject) => {
      time.after(delayMs, () => {
        let outcome: Promise<T> | undefined;
        if (happens) {
          if (isWrite) onEffect(process);
          outcome = run();
          // A dead process receives no answer.
          outcome.catch(() => undefined);
        }
        if (process.isDead()) return;
        if (!isLost) {
          if (thawedAfterMs === 0) outcome!.then(resolve, reject);
          else time.after(thawedAfterMs, () => void outcome!.then(resolve, reject));
          return;
        }
        time.after(TIMEOUT_MS, () => {
          if (!process.isDead()) reject(new StoreFault('timeout', 'simulated timeout', { retryable: true }));
        });
      });
    });
  }

  function failing<T>(delayMs: number, fault: () => Error): Promise<T> {
    return new Promise((_, reject) => {
      time.after(delayMs, () => {
        if (!process.isDead()) reject(fault());
      });
    });
  }

  /** How far behind this read is. Milliseconds. */
  const lag = (consistent: boolean): number =>
    !consistent && plan.strikes('staleReads', SHARES.staleReads) ? plan.fraction('staleReads') * STALE_MAX_MS : 0;

  return {
    get: (key, at) => call(false, () => tables.get(key, at)),
    getMany: (keys, at) => call(false, () => tables.getMany(keys, at)),
    query: (request) =>
      call(false, async () => {
        const page = await tables.query(request);
        const lagMs = lag(request.consistent);
        return lagMs === 0 ? page : asItWas(page, request, recent, time.nowMs() - lagMs);
      }),
    scan: (request) =>
      call(false, async () => {
        const page = await tables.scan(request);
        return request.consistent ? page : scannedAsItWas(page, request, recent, () => time.nowMs() - lag(false));
      }),
    write(write: Write, wanted?: WriteOptions): Promise<WriteOutcome> {
      const isResent = plan.strikes('resend', SHARES.resend);
      return call(true, async () => {
        // The answer to the first request is lost. The second request may be refused because the first one succeeded.
        if (isResent) await tables.write(write, wanted);
        return tables.write(write, wanted);
      });
    },
    transact(writes): Promise<TransactOutcome> {
      if (plan.strikes('contention', SHARES.contention)) {
        return call(false, () => Promise.resolve({ kind: 'contended' }));
      }
      return call(true, () => tables.transact(writes));
    },
  };
}

/** The page as a delayed replica returns it. Only whole partitions change. */
function asItWas(page: QueryPage, request: QueryRequest, recent: RecentChanges, momentMs: number): QueryPage {
  const { table, pk, after, through, beginsWith, limit, attributes } = request;
  if (after !== undefined || through !== undefined || beginsWith !== undefined || limit !== undefined) {
    return page;
  }
  if (page.next !== undefined) return page;
  return { items: partitionAsItWas(page.items, recent.since(table, pk, momentMs), attributes) };
}

/** The same of a whole segment: each partition is read from a replica of its own, with its own lag. */
function scannedAsItWas(
  page: ScanPage,
  { table, segment, segments, after, attributes }: ScanRequest,
  recent: RecentChanges,
  momentMs: () => number,
): ScanPage {
  if (after !== undefined || page.next !== undefined) return page;
  const partitions = new Map<string, Item[]>();
  for (const item of page.items) {
    const pk = item['pk'] as string;
    const items = partitions.get(pk);
    if (items === undefined) partitions.set(pk, [item]);
    else items.push(item);
  }
  for (const pk of recent.partitions(table)) {
    if (segmentOf(pk, segments) === segment && !partitions.has(pk)) partitions.set(pk, []);
  }
  return {
    items: [...partitions]
      .sort(([one], [other]) => compareKeys(one, other))
      .flatMap(([pk, items]) => partitionAsItWas(items, recent.since(table, pk, momentMs()), attributes)),
  };
}

function partitionAsItWas(
  now: readonly Item[],
  undone: readonly TimedChange[],
  attributes: readonly string[] | undefined,
): readonly Item[] {
  if (undone.length === 0) return now;
  const items = new Map<string, Item>(now.map((item) => [item['sk'] as string, item]));
  for (const { key, oldImage } of undone.toReversed()) {
    if (oldImage === undefined) items.delete(key.sk);
    else items.set(key.sk, attributes === undefined ? oldImage : only(oldImage, attributes));
  }
  return [...items].sort(([one], [other]) => compareKeys(one, other)).map(([, item]) => item);
}

function only(item: Item, attributes: readonly string[]): Item {
  const kept: Item = { pk: item['pk']!, sk: item['sk']! };
  for (const name of attributes) if (item[name] !== undefined) kept[name] = item[name];
  return kept;
}
