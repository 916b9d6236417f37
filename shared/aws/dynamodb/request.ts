/** Shared by all requests of the adapter: reports of calls and units, retries, and the mapping of errors. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConsumedCapacity, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { itemBytes, WRITE_UNIT_BYTES } from '../../store/item-size.ts';
import { type ConsumedUnits, type Item, StoreFault, type TableName } from '../../store/item-store.ts';
import { faultOf, isConflict } from './errors.ts';

/** One call to DynamoDB, with what an execution role must allow. */
export interface CallRecord {
  /** API operation as in an IAM action, without `dynamodb:`; `ConditionCheckItem` for a check in a transaction. */
  readonly operation: string;
  readonly table: TableName;
  /** Partition keys of the request. */
  readonly partitionKeys: readonly string[];
}

export interface RequestOptions {
  /** Physical name of each table that the process may use; use of another table is a fault. */
  readonly tables: Readonly<Partial<Record<TableName, string>>>;
  /** Receives the consumed units of each request. DynamoDB returns them at no cost. */
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

/** Attempts at a write that conflicts with a transaction, and at keys that a batch did not process. */
export const CONFLICT_ATTEMPTS_MAX = 6;
const CONFLICT_PAUSE_MS = 20;

export function tableNameOf(options: RequestOptions, table: TableName): string {
  const name = options.tables[table];
  if (name === undefined) {
    throw new StoreFault('rejected', `this process is not configured for the table ${table}`, { retryable: false });
  }
  return name;
}

/** Exponential backoff with jitter: a random part from half to all of a pause that doubles per attempt. */
export async function pauseBefore(attempt: number, options: RequestOptions): Promise<void> {
  const random = options.random ?? Math.random;
  const pause = options.pause ?? sleep;
  await pause(CONFLICT_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + random() / 2));
}

/** Repeats the request while it conflicts with a transaction. The caller distinguishes refusals from faults. */
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

export function reportConsumed(
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
    // The service returns the name of the request, or the table's ARN.
    if (name !== undefined && (physical === name || physical?.endsWith(`/${name}`))) return table;
  }
  throw new StoreFault('rejected', `response for the unknown table ${physical}`, { retryable: false });
}

/**
 * A refused write is billed, but its response has no units. They are computed from the item that refused it, at least
 * one unit.
 */
export function reportRefused(
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
