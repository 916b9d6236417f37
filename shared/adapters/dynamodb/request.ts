/** What every request of the adapter shares: who is told of it, how it is retried, what its errors become. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConsumedCapacity, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { itemBytes, WRITE_UNIT_BYTES } from '../../ports/item-size.ts';
import { type ConsumedUnits, type Item, StoreFault, type TableName } from '../../ports/item-store.ts';
import { faultOf, isConflict } from './errors.ts';

/** One call as it goes out: what an execution role must allow. */
export interface CallRecord {
  /** API operation, as IAM spells it behind `dynamodb:`; `ConditionCheckItem` for a check in a transaction. */
  readonly operation: string;
  readonly table: TableName;
  /** Partition keys touched. */
  readonly partitionKeys: readonly string[];
}

export interface RequestOptions {
  /** Physical name of each table the process may use; using another one is a fault. */
  readonly tables: Readonly<Partial<Record<TableName, string>>>;
  /** Told of the units of each request. Asking for them is free. */
  readonly onConsumed?: (units: ConsumedUnits) => void;
  readonly onCall?: (call: CallRecord) => void;
  /** A number in [0, 1), for jitter. */
  readonly random?: () => number;
  /** Waits between attempts. Milliseconds. */
  readonly pause?: (milliseconds: number) => Promise<unknown>;
}

export interface DynamoDbOptions extends RequestOptions {
  readonly client: DynamoDBClient;
}

/** Attempts at a write that met a transaction on its item, and at keys a batch left unread. */
export const CONFLICT_ATTEMPTS_MAX = 6;
const CONFLICT_PAUSE_MS = 20;

export function tableNameOf(options: RequestOptions, table: TableName): string {
  const name = options.tables[table];
  if (name === undefined) {
    throw new StoreFault('rejected', `this process was not given the table ${table}`, { retryable: false });
  }
  return name;
}

/** Half to the whole of a doubling wait: contenders part. */
export async function pauseBefore(attempt: number, options: RequestOptions): Promise<void> {
  const random = options.random ?? Math.random;
  const pause = options.pause ?? sleep;
  await pause(CONFLICT_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + random() / 2));
}

/** Sends until it does not meet a transaction; the caller tells refusals from faults. */
export async function sendPastConflicts<T>(send: () => Promise<T>, options: RequestOptions): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send();
    } catch (error) {
      if (!isConflict(error) || attempt >= CONFLICT_ATTEMPTS_MAX) throw error;
      await pauseBefore(attempt, options);
    }
  }
}

export async function orFault<T>(send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    throw faultOf(error);
  }
}

export const consumedWanted = (options: RequestOptions): { ReturnConsumedCapacity?: 'TOTAL' } =>
  options.onConsumed === undefined ? {} : { ReturnConsumedCapacity: 'TOTAL' };

export function tellConsumed(
  options: RequestOptions,
  operation: string,
  kind: 'read' | 'write',
  capacities: readonly (ConsumedCapacity | undefined)[],
): void {
  if (options.onConsumed === undefined) return;
  for (const capacity of capacities) {
    if (capacity === undefined) continue;
    const units = capacity.CapacityUnits ?? 0;
    options.onConsumed({
      table: logicalName(options, capacity.TableName),
      operation,
      readUnits: kind === 'read' ? units : 0,
      writeUnits: kind === 'write' ? units : 0,
    });
  }
}

function logicalName(options: RequestOptions, physical: string | undefined): TableName {
  for (const table of ['health', 'objects', 'control'] as const) {
    const name = options.tables[table];
    // The service answers the name it was asked by, or the table's ARN.
    if (name !== undefined && (physical === name || physical?.endsWith(`/${name}`))) return table;
  }
  throw new StoreFault('rejected', `answer for the unknown table ${physical}`, { retryable: false });
}

/** A refused write is billed, but its answer tells no units: by the item that refused it, at least one. */
export function tellRefused(
  options: RequestOptions,
  table: TableName,
  operation: string,
  current: Item | undefined,
): void {
  if (options.onConsumed === undefined) return;
  const bytes = current === undefined ? 0 : itemBytes(current);
  const writeUnits = Math.max(1, Math.ceil(bytes / WRITE_UNIT_BYTES));
  options.onConsumed({ table, operation, readUnits: 0, writeUnits });
}
