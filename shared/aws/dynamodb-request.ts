/**
 * What all requests of the adapter share: reports of calls and units, retries, errors. And the conditional UpdateItem,
 * which the SDK's client sends, or our own (lean-updater.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  ConsumedCapacity,
  DynamoDBClient,
  UpdateItemCommandInput,
  UpdateItemCommandOutput,
} from '@aws-sdk/client-dynamodb';
import { type Backoff, backoffMs } from '../backoff.ts';
import {
  type ConsumedUnits,
  type Item,
  itemBytes,
  StoreFault,
  type TableName,
  type TransactOutcome,
  type UpdateWrite,
  WRITE_UNIT_BYTES,
  type WriteOptions,
  type WriteOutcome,
} from '../store/item-store.ts';
import {
  conditionExpression,
  itemFromWire,
  placeholderInput,
  placeholders,
  presentItem,
  toWire,
  updateExpression,
  type WireItem,
} from './dynamodb-expression.ts';

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
export const CONFLICT_PAUSES: Backoff = { firstMs: 20, limitMs: 640, jitter: [0.5, 1] };

export function tableNameOf(options: RequestOptions, table: TableName): string {
  const name = options.tables[table];
  if (name === undefined) {
    throw new StoreFault('rejected', `this process is not configured for the table ${table}`, { retryable: false });
  }
  return name;
}

export async function pauseBefore(attempt: number, options: RequestOptions): Promise<void> {
  const random = options.random ?? Math.random;
  const pause = options.pause ?? sleep;
  await pause(backoffMs(CONFLICT_PAUSES, attempt - 1, random()));
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

/** Counts the units of an event. A process handles one event at a time. */
export function unitCounter() {
  let consumed = { readUnits: 0, writeUnits: 0 };
  return {
    onConsumed({ readUnits, writeUnits }: ConsumedUnits): void {
      consumed = { readUnits: consumed.readUnits + readUnits, writeUnits: consumed.writeUnits + writeUnits };
    },
    takeUnits() {
      const units = consumed;
      consumed = { readUnits: 0, writeUnits: 0 };
      return units;
    },
  };
}

// Errors are classified by name and code, never by the text of a message. The SDK has already made `maxAttempts`
// attempts after throttling and connection errors when an error arrives here.
const THROTTLED = new Set([
  'ProvisionedThroughputExceededException',
  'ThrottlingException',
  'Throttling',
  'ThrottlingError',
  'ProvisionedThroughputExceeded',
  'RequestLimitExceeded',
  'LimitExceededException',
]);
/** A conflict of two requests on one item; nothing was written. */
const CONFLICT = new Set(['TransactionConflictException', 'TransactionConflict']);
/** The outcome is unknown. `TransactionInProgress`: the first attempt of a repeated transaction is still running. */
const TIMEOUT = new Set([
  'TimeoutError',
  'AbortError',
  'RequestTimeout',
  'RequestTimeoutException',
  'TransactionInProgressException',
]);
const REJECTED = new Set([
  'ValidationException',
  'ValidationError',
  'ResourceNotFoundException',
  'AccessDeniedException',
  'AccessDenied',
  'UnrecognizedClientException',
  'InvalidSignatureException',
  'ExpiredTokenException',
  'MissingAuthenticationTokenException',
  'SerializationException',
  'IdempotentParameterMismatchException',
]);
const TOO_LARGE = new Set(['ItemCollectionSizeLimitExceededException', 'ItemCollectionSizeLimitExceeded']);

interface ServiceError {
  readonly name: string;
  readonly Item?: WireItem;
  readonly CancellationReasons?: readonly { readonly Code?: string; readonly Item?: WireItem }[];
}

export const isServiceError = (error: unknown): error is ServiceError =>
  typeof error === 'object' && error !== null && typeof (error as { name?: unknown }).name === 'string';

export const isConflict = (error: unknown): boolean => isServiceError(error) && CONFLICT.has(error.name);

/** Node's codes for lost connections. Another attempt may succeed. */
const CONNECTION_CODES = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN']);

/** Whether the same request may be sent again, as the SDK's retry strategy decides it. */
export const isRepeatable = (error: unknown): boolean =>
  isServiceError(error) &&
  (THROTTLED.has(error.name) ||
    TIMEOUT.has(error.name) ||
    ['InternalServerError', 'ServiceUnavailable'].includes(error.name) ||
    CONNECTION_CODES.has((error as { code?: string }).code ?? ''));

/** The item that refused a single write; undefined for other errors. */
export function refusalOf(error: unknown): { readonly kind: 'refused'; readonly current?: Item } | undefined {
  if (!isServiceError(error) || error.name !== 'ConditionalCheckFailedException') return undefined;
  const current = presentItem(error.Item);
  return current === undefined ? { kind: 'refused' } : { kind: 'refused', current };
}

/**
 * Why a transaction was cancelled. A failed condition has precedence over a conflict, because it would fail again.
 * Throttling of one part is a fault of the whole transaction. undefined: the error is no cancellation.
 */
export function cancellationOf(
  error: unknown,
): Exclude<TransactOutcome, { kind: 'written' }> | { readonly kind: 'throttled' } | undefined {
  if (isConflict(error)) return { kind: 'contended' };
  if (!isServiceError(error) || error.name !== 'TransactionCanceledException') return undefined;
  const reasons = error.CancellationReasons ?? [];
  const failures: { index: number; current?: Item }[] = [];
  reasons.forEach((reason, index) => {
    if (reason.Code !== 'ConditionalCheckFailed') return;
    const current = presentItem(reason.Item);
    failures.push(current === undefined ? { index } : { index, current });
  });
  if (failures.length > 0) return { kind: 'refused', failures };
  const codes = reasons.map((reason) => reason.Code ?? 'None').filter((code) => code !== 'None');
  if (codes.some((code) => REJECTED.has(code) || TOO_LARGE.has(code))) return undefined;
  if (codes.some((code) => THROTTLED.has(code))) return { kind: 'throttled' };
  return codes.some((code) => CONFLICT.has(code)) ? { kind: 'contended' } : undefined;
}

export function faultOf(error: unknown): StoreFault {
  if (error instanceof StoreFault) return error;
  const name = isServiceError(error) ? error.name : 'unknown';
  const codes = isServiceError(error) ? (error.CancellationReasons ?? []).map((reason) => reason.Code ?? 'None') : [];
  const any = (set: ReadonlySet<string>): boolean => set.has(name) || codes.some((code) => set.has(code));
  const message = `DynamoDB: ${name}`;
  if (any(TOO_LARGE)) return new StoreFault('too-large', message, { retryable: false, cause: error });
  if (any(REJECTED)) return new StoreFault('rejected', message, { retryable: false, cause: error });
  if (any(THROTTLED) || any(CONFLICT)) return new StoreFault('throttled', message, { retryable: true, cause: error });
  if (TIMEOUT.has(name)) return new StoreFault('timeout', message, { retryable: true, cause: error });
  return new StoreFault('unreachable', message, { retryable: true, cause: error });
}

/** The request of an update, in or out of a transaction. */
export function updateInput(write: UpdateWrite, tableName: string) {
  const holders = placeholders();
  const update = updateExpression(write, holders);
  const condition = write.when === undefined ? undefined : conditionExpression(write.when, holders);
  return {
    TableName: tableName,
    Key: { pk: toWire(write.key.pk), sk: toWire(write.key.sk) },
    ...(update === '' ? {} : { UpdateExpression: update }),
    ...(condition === undefined
      ? {}
      : { ConditionExpression: condition, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const }),
    ...placeholderInput(holders),
  };
}

/** Sends one request. Throws errors with the service's name, and with `Item` if a condition failed. */
export type UpdateSender = (
  input: UpdateItemCommandInput,
) => Promise<Pick<UpdateItemCommandOutput, 'Attributes' | 'ConsumedCapacity'>>;

export async function updateItem(
  send: UpdateSender,
  options: RequestOptions,
  write: UpdateWrite,
  wanted: WriteOptions = {},
): Promise<WriteOutcome> {
  const input = {
    ...updateInput(write, tableNameOf(options, write.key.table)),
    ...consumedWanted(options),
    ...(wanted.returnItem ? { ReturnValues: 'ALL_NEW' as const } : {}),
    ...(wanted.returnPrevious ? { ReturnValues: 'ALL_OLD' as const } : {}),
  };
  options.onCall?.({ operation: 'UpdateItem', table: write.key.table, partitionKeys: [write.key.pk] });
  try {
    const answer = await sendPastConflicts(() => send(input), options);
    reportConsumed(options, 'UpdateItem', 'write', [answer.ConsumedCapacity]);
    if (answer.Attributes === undefined) return { kind: 'written' };
    if (wanted.returnItem) return { kind: 'written', item: itemFromWire(answer.Attributes) };
    const previous = wanted.returnPrevious ? presentItem(answer.Attributes) : undefined;
    return previous === undefined ? { kind: 'written' } : { kind: 'written', previous };
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === undefined) throw faultOf(error);
    reportRefused(options, write.key.table, 'UpdateItem', refusal.current);
    return refusal;
  }
}
