/** Read and write units of the requests in memory, as DynamoDB bills them. */
import {
  type ConsumedUnits,
  type Item,
  type ItemKey,
  keyText,
  type TableName,
  WRITE_UNIT_BYTES,
  type Write,
} from '../item-store.ts';
import { weightOf, writtenBytes } from '../writes/item-weight.ts';
import type { WriteEffect } from '../writes/write-decision.ts';

const READ_UNIT_BYTES = 4_096;

/** A read is rounded up to 4 KB, at least one unit. An eventually consistent read costs half. */
const readUnits = (bytes: number, consistent: boolean): number =>
  Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES)) * (consistent ? 1 : 0.5);

/** A write is rounded up to 1 KB, at least one unit. A refused write is billed as well. */
const writeUnits = (before: Item | undefined, after: Item | undefined): number =>
  Math.max(1, Math.ceil(writtenBytes(before, after) / WRITE_UNIT_BYTES));

const OPERATIONS = { put: 'PutItem', update: 'UpdateItem', delete: 'DeleteItem' } as const;

export interface UnitReport {
  get(key: ItemKey, item: Item | undefined, consistent: boolean): void;
  /** One report per table. A key that is requested twice is read once. */
  getMany(keys: readonly ItemKey[], items: readonly (Item | undefined)[], consistent: boolean): void;
  page(table: TableName, operation: 'Query' | 'Scan', bytes: number, consistent: boolean): void;
  write(kind: Write['kind'], effect: WriteEffect): void;
  /** One report per table. Each part costs twice its units, also in a refused transaction. */
  transact(parts: readonly WriteEffect[]): void;
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

    write: (kind, { key, before, after }) => onWrite(key.table, OPERATIONS[kind], writeUnits(before, after)),

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
