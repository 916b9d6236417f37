/** The statements over one connection, with the cache of decoded items in front of them. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import {
  compareKeys,
  type Item,
  type ItemKey,
  type ItemPosition,
  keyText,
  type QueryRequest,
  type ScanRequest,
  type TableName,
} from '../../shared/store/item-store.ts';
import { changeOf, type StoreChange } from '../../shared/store/writes/store-change.ts';
import { textHash } from '../../shared/text.ts';
import type { ItemCache } from './item-cache.ts';
import { decodeItem, type EncodedItem, encodeItem } from './item-encoding.ts';

export const TABLES: readonly TableName[] = ['health', 'objects', 'control'];

const HASHES = 2 ** 32;

/** A row of a page, not yet decoded. */
export interface Row {
  readonly key: ItemKey;
  readonly encoded: SQLOutputValue;
  /** About the bytes of the item. */
  readonly bytes: number;
}

/** A change that a consumer must process, from its row. */
export interface PendingChange {
  /** Unique in the life of a process, and of the rows that it finds. */
  readonly id: number;
  readonly consumer: string;
  readonly change: StoreChange;
}

/** Prepared once. */
interface TableStatements {
  readonly read: StatementSync;
  readonly write: StatementSync;
  readonly delete: StatementSync;
  readonly after: StatementSync;
  readonly from: StatementSync;
  readonly scan: StatementSync;
  readonly due: StatementSync;
}

export class Tables {
  readonly #database: DatabaseSync;
  readonly #cache: ItemCache;
  readonly #statements: Readonly<Record<TableName, TableStatements>>;
  readonly #addPending: StatementSync;
  readonly #deletePending: StatementSync;
  readonly #pendingOf: StatementSync;
  #lastPendingId: number;

  constructor(database: DatabaseSync, cache: ItemCache) {
    this.#database = database;
    this.#cache = cache;
    const prepare = (sql: string): StatementSync => {
      const statement = database.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    const statementsOf = (table: TableName): TableStatements => {
      const page = `SELECT sk, item FROM ${table} WHERE hash = ? AND pk = ? AND`;
      const key = 'hash = ? AND pk = ? AND sk = ?';
      return {
        read: prepare(`SELECT item FROM ${table} WHERE ${key}`),
        write: prepare(
          `INSERT INTO ${table} (hash, pk, sk, ttl, item) VALUES (?, ?, ?, ?, ?)
           ON CONFLICT (hash, pk, sk) DO UPDATE SET ttl = excluded.ttl, item = excluded.item`,
        ),
        delete: prepare(`DELETE FROM ${table} WHERE ${key}`),
        after: prepare(`${page} sk > ? ORDER BY sk`),
        from: prepare(`${page} sk >= ? ORDER BY sk`),
        scan: prepare(
          `SELECT pk, sk, item FROM ${table} WHERE (hash, pk, sk) > (?, ?, ?) AND hash < ? ORDER BY hash, pk, sk`,
        ),
        due: prepare(`SELECT pk, sk FROM ${table} WHERE ttl <= ? ORDER BY ttl LIMIT ?`),
      };
    };
    this.#statements = {
      health: statementsOf('health'),
      objects: statementsOf('objects'),
      control: statementsOf('control'),
    };
    this.#addPending = prepare('INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
    this.#deletePending = prepare('DELETE FROM pending WHERE id = ?');
    this.#pendingOf = prepare(
      'SELECT id, tbl, pk, sk, cause, old, new FROM pending WHERE consumer = ? ORDER BY id LIMIT ?',
    );
    this.#lastPendingId = Number(firstOf(prepare('SELECT coalesce(max(id), 0) FROM pending'))?.[0]);
  }

  read(key: ItemKey): Item | undefined {
    const text = keyText(key);
    const cached = this.#cache.get(text);
    if (cached !== undefined) return cached;
    const { pk, sk, table } = key;
    const row = firstOf(this.#statements[table].read, textHash(pk), pk, sk);
    if (row === undefined) return undefined;
    const item = decodeItem(row[0], pk, sk);
    this.#cache.set(text, item, lengthOf(row[0]));
    return item;
  }

  /** Inside the transaction of a group. Returns the length of what is stored. */
  write(key: ItemKey, item: Item | undefined): number {
    const { table, pk, sk } = key;
    const text = keyText(key);
    if (item === undefined) {
      this.#statements[table].delete.run(textHash(pk), pk, sk);
      this.#cache.delete(text);
      return 0;
    }
    const encoded = encodeItem(item);
    const ttl = typeof item['ttl'] === 'number' ? item['ttl'] : null;
    this.#statements[table].write.run(textHash(pk), pk, sk, ttl, encoded);
    this.#cache.set(text, item, encoded.length);
    return encoded.length;
  }

  /** The transaction that wrote these items was undone. */
  forget(keys: Iterable<string>): void {
    for (const key of keys) this.#cache.delete(key);
  }

  /** Rows of a partition in the order of the request, from `after` on. The caller ends the iteration. */
  *rows({ table, pk, beginsWith, through }: QueryRequest, after: string | undefined): Generator<Row> {
    const { after: rowsAfter, from } = this.#statements[table];
    const hash = textHash(pk);
    const found =
      beginsWith !== undefined && (after === undefined || compareKeys(after, beginsWith) < 0)
        ? rowsOf(from, hash, pk, beginsWith)
        : rowsOf(rowsAfter, hash, pk, after ?? '');
    for (const [sk, encoded] of found as Iterable<readonly [string, SQLOutputValue]>) {
      if (through !== undefined && compareKeys(sk, through) > 0) return;
      if (beginsWith !== undefined && !sk.startsWith(beginsWith)) return;
      yield { key: { table, pk, sk }, encoded, bytes: lengthOf(encoded) + pk.length + sk.length };
    }
  }

  /** Rows of a segment in the order of hash, partition and sort key. */
  *scan({ table, segment, segments }: ScanRequest, after: ItemPosition | undefined): Generator<Row> {
    const end = Math.ceil(((segment + 1) * HASHES) / segments);
    const start: readonly SQLInputValue[] =
      after === undefined
        ? [Math.ceil((segment * HASHES) / segments), '', '']
        : [textHash(after.pk), after.pk, after.sk];
    const found = rowsOf(this.#statements[table].scan, ...start, end);
    for (const [pk, sk, encoded] of found as Iterable<readonly [string, string, SQLOutputValue]>) {
      yield { key: { table, pk, sk }, encoded, bytes: lengthOf(encoded) + pk.length + sk.length };
    }
  }

  /** A page fills no cache: it would replace what beats and commits use. */
  decoded({ key, encoded }: Row): Item {
    return this.#cache.peek(keyText(key)) ?? decodeItem(encoded, key.pk, key.sk);
  }

  /** Keys of expired items, the oldest first. */
  due(table: TableName, nowSeconds: number, limit: number): readonly ItemKey[] {
    return [...rowsOf(this.#statements[table].due, nowSeconds, limit)].map(([pk, sk]) => ({
      table,
      pk: pk as string,
      sk: sk as string,
    }));
  }

  /** Inside the transaction of a group: a row for each consumer. */
  addPending({ key, cause, oldImage, newImage }: StoreChange, consumers: readonly string[]): readonly number[] {
    if (consumers.length === 0) return [];
    const encoded = (image: Item | undefined): EncodedItem | null => (image === undefined ? null : encodeItem(image));
    const images = [encoded(oldImage), encoded(newImage)] as const;
    return consumers.map((consumer) => {
      this.#lastPendingId += 1;
      this.#addPending.run(this.#lastPendingId, consumer, key.table, key.pk, key.sk, cause, ...images);
      return this.#lastPendingId;
    });
  }

  deletePending(ids: readonly number[]): void {
    for (const id of ids) this.#deletePending.run(id);
  }

  pendingOf(consumer: string, limit: number): readonly PendingChange[] {
    return [...rowsOf(this.#pendingOf, consumer, limit)].flatMap(([id, table, pk, sk, cause, before, after]) => {
      const key = { table, pk, sk } as ItemKey;
      const image = (encoded: SQLOutputValue | undefined): Item | undefined =>
        encoded === null || encoded === undefined ? undefined : decodeItem(encoded, key.pk, key.sk);
      const change = changeOf(key, image(before), image(after), cause as StoreChange['cause']);
      return change === undefined ? [] : [{ id: id as number, consumer, change }];
    });
  }

  /** Compares every cached item with its row. */
  wrongCacheEntries(): readonly string[] {
    return this.#cache.entries().flatMap((item) => {
      const { pk, sk } = item as { readonly pk: string; readonly sk: string };
      const isRow = TABLES.some((table) => {
        if (this.#cache.peek(keyText({ table, pk, sk })) !== item) return false;
        const row = firstOf(this.#statements[table].read, textHash(pk), pk, sk);
        return (
          row !== undefined && changeOf({ table, pk, sk }, item, decodeItem(row[0], pk, sk), 'write') === undefined
        );
      });
      return isRow ? [] : [`${pk} ${sk}`];
    });
  }

  begin(): void {
    this.#database.exec('BEGIN IMMEDIATE');
  }

  commit(): void {
    this.#database.exec('COMMIT');
  }

  /** SQLite itself ends a transaction after some errors. */
  rollBack(): void {
    if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
  }
}

const lengthOf = (encoded: SQLOutputValue | undefined): number =>
  typeof encoded === 'string' || encoded instanceof Uint8Array ? encoded.length : 0;

/** Rows of a statement that returns arrays; the types of Node know only objects. */
const rowsOf = (statement: StatementSync, ...values: readonly SQLInputValue[]): NodeJS.Iterator<SQLOutputValue[]> =>
  statement.iterate(...values) as unknown as NodeJS.Iterator<SQLOutputValue[]>;

const firstOf = (statement: StatementSync, ...values: readonly SQLInputValue[]): SQLOutputValue[] | undefined =>
  statement.get(...values) as unknown as SQLOutputValue[] | undefined;
