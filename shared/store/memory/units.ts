/** Read and write units of the requests in memory, as DynamoDB bills them. */
import { itemBytes, WRITE_UNIT_BYTES } from '../item-size.ts';
import type { ConsumedUnits, Item, ItemKey, TableName, Write } from '../item-store.ts';
import { keyText } from '../request-limits.ts';

const READ_UNIT_BYTES = 4_096;

/** Bytes of each stored item. An item is measured once: pages and units need its size at every read. */
const weights = new WeakMap<Item, number>();

/** Bytes of an item; 0 for one that does not exist. */
export const weightOf = (item: Item | undefined): number =>
  item === undefined ? 0 : (weights.get(item) ?? itemBytes(item));

export function keepWeight(item: Item, bytes: number): void {
  weights.set(item, bytes);
}

/** Bytes that a write is billed for: the larger of the item before and after it. */
export const writtenBytes = (before: Item | undefined, after: Item | undefined): number =>
  Math.max(weightOf(before), weightOf(after));

/** A read is rounded up to 4 KB, at least one unit. An eventually consistent read costs half. */
const readUnits = (bytes: number, consistent: boolean): number =>
  Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES)) * (consistent ? 1 : 0.5);

/** A write is rounded up to 1 KB, at least one unit. A refused write is billed as well. */
const writeUnits = (before: Item | undefined, after: Item | undefined): number =>
  Math.max(1, Math.ceil(writtenBytes(before, after) / WRITE_UNIT_BYTES));

const OPERATIONS = { put: 'PutItem', update: 'UpdateItem', delete: 'DeleteItem' } as const;

/** The items before and after one part of a transaction. */
export interface TransactedItem {
  readonly key: ItemKey;
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

export interface UnitReport {
  get(key: ItemKey, item: Item | undefined, consistent: boolean): void;
  /** One report per table. A key that is requested twice is read once. */
  getMany(keys: readonly ItemKey[], items: readonly (Item | undefined)[], consistent: boolean): void;
  page(table: TableName, operation: 'Query' | 'Scan', bytes: number, consistent: boolean): void;
  write(write: Write, before: Item | undefined, after: Item | undefined): void;
  /** One report per table. Each part costs twice its units, also in a refused transaction. */
  transact(parts: readonly TransactedItem[]): void;
}

/** Reports the units of each request. Without a receiver nothing is computed. */
export function unitReport(onConsumed: ((units: ConsumedUnits) => void) | undefined): UnitReport {
  if (onConsumed === undefined) return NO_REPORT;
  const onRead = (table: TableName, operation: string, units: number): void =>
    onConsumed({ table, operation, readUnits: units, writeUnits: 0 });
  const onWrite = (table: TableName, operation: string, units: number): void =>
    onConsumed({ table, operation, readUnits: 0, writeUnits: units });
  return {
    get: (key, item, consistent) => onRead(key.table, 'GetItem', readUnits(weightOf(item), consistent)),

    getMany(keys, items, consistent) {
      const distinct = new Map<string, { table: TableName; units: number }>();
      keys.forEach((key, index) => {
        const units = readUnits(weightOf(items[index]), consistent);
        distinct.set(keyText(key), { table: key.table, units });
      });
      for (const [table, units] of sumByTable([...distinct.values()])) onRead(table, 'BatchGetItem', units);
    },

    page: (table, operation, bytes, consistent) => onRead(table, operation, readUnits(bytes, consistent)),

    write: (write, before, after) => onWrite(write.key.table, OPERATIONS[write.kind], writeUnits(before, after)),

    transact(parts) {
      const units = parts.map(({ key: { table }, before, after }) => ({ table, units: 2 * writeUnits(before, after) }));
      for (const [table, sum] of sumByTable(units)) onWrite(table, 'TransactWriteItems', sum);
    },
  };
}

const NO_REPORT: UnitReport = { get() {}, getMany() {}, page() {}, write() {}, transact() {} };

function sumByTable(parts: readonly { table: TableName; units: number }[]): ReadonlyMap<TableName, number> {
  const sums = new Map<TableName, number>();
  for (const { table, units } of parts) sums.set(table, (sums.get(table) ?? 0) + units);
  return sums;
}
