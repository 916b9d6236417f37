/**
 * Classifies DynamoDB's errors by name and code, never by the text of a message. The SDK has already made `maxAttempts`
 * attempts after throttling and connection errors when an error arrives here.
 */
import { type Item, StoreFault, type TransactOutcome } from '../../store/item-store.ts';
import { presentItem, type WireItem } from './attribute-value.ts';

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
