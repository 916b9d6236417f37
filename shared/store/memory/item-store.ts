/**
 * The tables in memory, with the semantics of DynamoDB. The contract suite test/contract/item-store.ts runs on both.
 *
 * Each operation is applied completely at the moment of the call, so a simulation is deterministic. The store can report
 * the units of each request, and keep the changes of a table for stream handlers.
 */

import { TRANSACT_BYTES_MAX } from '../item-size.ts';
import {
  type ConsumedUnits,
  type Item,
  type ItemKey,
  type ItemStore,
  StoreFault,
  type TableName,
  type TransactOutcome,
  type TransactWrite,
  type Write,
  type WriteOptions,
  type WriteOutcome,
} from '../item-store.ts';
import { checkSegment, checkTransaction } from '../request-limits.ts';
import { type ItemChange, ItemChanges } from './changes.ts';
import { conditionHolds } from './conditions.ts';
import { type Page, queryPage, scanPage } from './pages.ts';
import { itemsInOrder, type Partitions, replaceItem } from './partitions.ts';
import { type UnitReport, unitReport, writtenBytes } from './units.ts';
import { checkKey, itemAfter } from './written-item.ts';

export interface MemoryItemStoreOptions {
  readonly onConsumed?: (units: ConsumedUnits) => void;
  /** Tables that keep their changes. */
  readonly changesOf?: readonly TableName[];
}

export interface MemoryItemStore extends ItemStore {
  /** Changes of a table named in `changesOf` after a sequence number, in order. Writes that changed nothing are absent. */
  changes(table: TableName, after?: number): readonly ItemChange[];
  /** Drops changes up to and including this one. It bounds the memory of a long simulation. */
  forgetChanges(table: TableName, through: number): void;
  /** Every item of a table in key order, for checks. */
  items(table: TableName): readonly Item[];
  /** Deletes the items with a `ttl` (epoch seconds) that has passed, as time to live does. Returns their number. */
  expire(table: TableName, nowSeconds: number): number;
}

export function memoryItemStore({ onConsumed, changesOf = [] }: MemoryItemStoreOptions = {}): MemoryItemStore {
  const tables = new MemoryTables(changesOf);
  const report = unitReport(onConsumed);
  return {
    async get(key, { consistent }) {
      checkKey(key);
      const item = tables.read(key);
      report.get(key, item, consistent);
      return item;
    },

    async getMany(keys, { consistent }) {
      for (const key of keys) checkKey(key);
      const items = keys.map((key) => tables.read(key));
      report.getMany(keys, items, consistent);
      return items;
    },

    async query(request) {
      checkKey({ ...request, sk: request.beginsWith || 'any' });
      const page = queryPage(tables.partitions(request.table).get(request.pk), request);
      report.page(request.table, 'Query', page.bytes, request.consistent);
      return withoutBytes(page);
    },

    async scan(request) {
      checkSegment(request);
      const page = scanPage(tables.partitions(request.table), request);
      report.page(request.table, 'Scan', page.bytes, request.consistent);
      return withoutBytes(page);
    },

    write: async (write, options = {}) => writeItem(tables, report, write, options),
    transact: async (writes) => transactItems(tables, report, writes),

    changes: (table, after = 0) => tables.changesOf(table).after(after),
    forgetChanges: (table, through) => tables.forgetChanges(table, through),
    items: (table) => itemsInOrder(tables.partitions(table)),
    expire: (table, nowSeconds) => tables.expire(table, nowSeconds),
  };
}

/** The three tables, and the changes of those that keep them. */
class MemoryTables {
  readonly #partitions: Record<TableName, Partitions> = { health: new Map(), objects: new Map(), control: new Map() };
  readonly #changes: ReadonlyMap<TableName, ItemChanges>;

  constructor(changesOf: readonly TableName[]) {
    this.#changes = new Map(changesOf.map((table) => [table, new ItemChanges()]));
  }

  partitions(table: TableName): Partitions {
    return this.#partitions[table];
  }

  read({ table, pk, sk }: ItemKey): Item | undefined {
    return this.#partitions[table].get(pk)?.items.get(sk);
  }

  /** Writes an item, or deletes it if `next` is undefined. */
  replace(key: ItemKey, next: Item | undefined, isExpired = false): void {
    const previous = replaceItem(this.#partitions[key.table], key.pk, key.sk, next);
    this.#changes.get(key.table)?.add(key, previous, next, isExpired);
  }

  /** @throws RangeError if the table keeps no changes */
  changesOf(table: TableName): ItemChanges {
    const changes = this.#changes.get(table);
    if (changes === undefined) throw new RangeError(`changes of ${table} are not kept: name it in changesOf`);
    return changes;
  }

  forgetChanges(table: TableName, through: number): void {
    this.#changes.get(table)?.drop(through);
  }

  expire(table: TableName, nowSeconds: number): number {
    const isDue = ({ ttl }: Item): boolean => typeof ttl === 'number' && ttl <= nowSeconds;
    const due = itemsInOrder(this.#partitions[table]).filter(isDue);
    for (const { pk, sk } of due) this.replace({ table, pk: pk as string, sk: sk as string }, undefined, true);
    return due.length;
  }
}

const withoutBytes = <Position>({ items, next }: Page<Position>) => (next === undefined ? { items } : { items, next });

/** No item, or only its keys. Some engines return the one for the other, so both count as absent. */
const isBare = (item: Item | undefined): item is undefined => item === undefined || Object.keys(item).length <= 2;

const isRefused = ({ when }: TransactWrite, current: Item | undefined): boolean =>
  when !== undefined && !conditionHolds(when, current);

function writeItem(tables: MemoryTables, report: UnitReport, write: Write, options: WriteOptions): WriteOutcome {
  const current = tables.read(write.key);
  const refused = isRefused(write, current);
  const next = refused ? current : itemAfter(write, current);
  report.write(write, current, next);
  if (refused) return isBare(current) ? { kind: 'refused' } : { kind: 'refused', current };
  tables.replace(write.key, next);
  if (options.returnItem && next !== undefined) return { kind: 'written', item: next };
  if (options.returnPrevious && !isBare(current)) return { kind: 'written', previous: current };
  return { kind: 'written' };
}

/** Evaluates every condition first. Then it applies all writes, or none. */
function transactItems(tables: MemoryTables, report: UnitReport, writes: readonly TransactWrite[]): TransactOutcome {
  checkTransaction(writes);
  const failures: { index: number; current?: Item }[] = [];
  const parts = writes.map((write, index) => {
    const before = tables.read(write.key);
    const refused = isRefused(write, before);
    if (refused) failures.push(isBare(before) ? { index } : { index, current: before });
    checkKey(write.key);
    const after = refused || write.kind === 'check' ? before : itemAfter(write, before);
    return { key: write.key, kind: write.kind, before, after };
  });
  if (parts.reduce((sum, { before, after }) => sum + writtenBytes(before, after), 0) > TRANSACT_BYTES_MAX) {
    throw new StoreFault('rejected', 'the items of the transaction are larger than 4 MB', { retryable: false });
  }
  report.transact(parts);
  if (failures.length > 0) return { kind: 'refused', failures };
  for (const { key, kind, after } of parts) if (kind !== 'check') tables.replace(key, after);
  return { kind: 'written' };
}
