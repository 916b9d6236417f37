/**
 * The tables in memory, with the semantics of DynamoDB. The contract suite test/contract/item-store.ts runs on both.
 *
 * Each operation is applied completely at the moment of the call, so a simulation is deterministic. The store can
 * report the units of each request, and keep the changes of a table for stream handlers.
 */
import {
  type ConsumedUnits,
  checkSegment,
  type Item,
  type ItemKey,
  type ItemStore,
  type TableName,
  type TransactOutcome,
  type TransactWrite,
  type Write,
  type WriteOptions,
  type WriteOutcome,
} from '../item-store.ts';
import { changeOf, type StoreChange } from '../writes/store-change.ts';
import { decideTransaction, decideWrite, type WriteEffect } from '../writes/write-decision.ts';
import { checkKey } from '../writes/written-item.ts';
import { type ItemChange, ItemChanges } from './item-changes.ts';
import { type Page, queryPage, scanPage } from './pages.ts';
import { itemsInOrder, type Partitions, replaceItem } from './partitions.ts';
import { type UnitReport, unitReport } from './units.ts';

export interface MemoryItemStoreOptions {
  readonly onConsumed?: (units: ConsumedUnits) => void;
  /** Tables that keep their changes. */
  readonly changesOf?: readonly TableName[];
}

export interface MemoryItemStore extends ItemStore {
  /**
   * Changes of a table named in `changesOf` after a sequence number, in order. Writes that changed nothing are absent.
   */
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

  apply({ key, before, after }: WriteEffect, cause: StoreChange['cause']): void {
    if (after === before) return;
    replaceItem(this.#partitions[key.table], key.pk, key.sk, after);
    const changes = this.#changes.get(key.table);
    const change = changes && changeOf(key, before, after, cause);
    if (change !== undefined) changes?.add(change);
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
    for (const before of due) {
      const key = { table, pk: before['pk'] as string, sk: before['sk'] as string };
      this.apply({ key, before, after: undefined }, 'expired');
    }
    return due.length;
  }
}

const withoutBytes = <Position>({ items, next }: Page<Position>) => (next === undefined ? { items } : { items, next });

function writeItem(tables: MemoryTables, report: UnitReport, write: Write, options: WriteOptions): WriteOutcome {
  const { outcome, effect } = decideWrite(write, tables.read(write.key), options);
  report.write(write.kind, effect);
  tables.apply(effect, 'write');
  return outcome;
}

function transactItems(tables: MemoryTables, report: UnitReport, writes: readonly TransactWrite[]): TransactOutcome {
  const { outcome, effects } = decideTransaction(writes, (key) => tables.read(key));
  report.transact(effects);
  if (outcome.kind === 'written') for (const effect of effects) tables.apply(effect, 'write');
  return outcome;
}
