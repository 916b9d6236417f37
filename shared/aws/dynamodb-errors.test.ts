import { describe, expect, it } from 'vitest';
import { cancellationOf, faultOf, isConflict, isRepeatable, refusalOf } from './dynamodb-request.ts';

const named = (name: string, rest: object = {}): Error => Object.assign(new Error('text of a message'), { name }, rest);
const cancelled = (...codes: (string | undefined)[]): Error =>
  named('TransactionCanceledException', {
    CancellationReasons: codes.map((Code) =>
      Code === 'ConditionalCheckFailed' ? { Code, Item: { pk: { S: 'p' }, n: { N: '1' } } } : { Code },
    ),
  });

describe('why a transaction was cancelled', () => {
  it('is a refusal if any condition failed, whatever the other reasons', () => {
    expect(
      cancellationOf(cancelled('None', 'TransactionConflict', 'ConditionalCheckFailed', 'ThrottlingError')),
    ).toEqual({
      kind: 'refused',
      failures: [{ index: 2, current: { pk: 'p', n: 1 } }],
    });
  });

  it.each([
    ['contended', cancelled('None', 'TransactionConflict')],
    ['contended', named('TransactionConflictException')],
    ['throttled', cancelled('None', 'ThrottlingError')],
    ['throttled', cancelled('TransactionConflict', 'ProvisionedThroughputExceeded')],
  ])('is %s', (kind, error) => {
    expect(cancellationOf(error)).toEqual({ kind });
  });

  it.each([
    cancelled('ValidationError', 'TransactionConflict'),
    cancelled('ItemCollectionSizeLimitExceeded'),
    named('ProvisionedThroughputExceededException'),
    named('TimeoutError'),
    named('TransactionInProgressException'),
    undefined,
  ])('is a fault and no outcome: %s', (error) => {
    expect(cancellationOf(error)).toBeUndefined();
  });
});

describe('faults', () => {
  it.each([
    ['rejected', false, named('ValidationException')],
    ['rejected', false, named('AccessDeniedException')],
    ['rejected', false, cancelled('ValidationError')],
    ['too-large', false, cancelled('ItemCollectionSizeLimitExceeded')],
    ['throttled', true, named('ThrottlingException')],
    ['throttled', true, named('TransactionConflictException')],
    ['timeout', true, named('TimeoutError')],
    ['timeout', true, named('TransactionInProgressException')],
    ['unreachable', true, named('InternalServerError')],
    ['unreachable', true, 'thrown text'],
  ])('%s', (code, retryable, error) => {
    expect(faultOf(error)).toMatchObject({ name: 'StoreFault', code, retryable, cause: error });
  });

  it('are distinct from refusals, which return the item that refused', () => {
    expect(refusalOf(named('ValidationException'))).toBeUndefined();
    expect(refusalOf(named('ConditionalCheckFailedException'))).toEqual({ kind: 'refused' });
    expect(refusalOf(named('ConditionalCheckFailedException', { Item: {} }))).toEqual({ kind: 'refused' });
    expect(refusalOf(named('ConditionalCheckFailedException', { Item: { n: { N: '2' } } }))).toEqual({
      kind: 'refused',
      current: { n: 2 },
    });
  });
});

/** Every name and code that DynamoDB documents for its errors, with what it means here. */
const CODES: Readonly<Record<string, readonly string[]>> = {
  throttled: [
    'ProvisionedThroughputExceededException',
    'ThrottlingException',
    'Throttling',
    'ThrottlingError',
    'ProvisionedThroughputExceeded',
    'RequestLimitExceeded',
    'LimitExceededException',
  ],
  contended: ['TransactionConflictException', 'TransactionConflict'],
  timeout: [
    'TimeoutError',
    'AbortError',
    'RequestTimeout',
    'RequestTimeoutException',
    'TransactionInProgressException',
  ],
  rejected: [
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
  ],
  'too-large': ['ItemCollectionSizeLimitExceededException', 'ItemCollectionSizeLimitExceeded'],
};

describe.each(Object.entries(CODES))('%s', (meaning, names) => {
  it.each(names)('is %s, by name and as the reason of a cancelled transaction', (name) => {
    const code = meaning === 'contended' ? 'throttled' : meaning;
    const retryable = !['rejected', 'too-large'].includes(code);
    expect(faultOf(named(name))).toMatchObject({ code, retryable });
    expect(isRepeatable(named(name))).toBe(meaning === 'throttled' || meaning === 'timeout');
    expect(isConflict(named(name))).toBe(meaning === 'contended');
    if (meaning === 'timeout') return;
    expect(faultOf(cancelled('None', name))).toMatchObject({ code, retryable });
    const isOutcome = meaning === 'throttled' || meaning === 'contended';
    expect(cancellationOf(cancelled(name, undefined))).toEqual(isOutcome ? { kind: meaning } : undefined);
  });
});

it.each(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'])(
  'a connection that ends with %s may be tried again',
  (code) => {
    expect(isRepeatable(named('Error', { code }))).toBe(true);
    expect(faultOf(named('Error', { code }))).toMatchObject({ code: 'unreachable', retryable: true });
  },
);

it('failures of the service may be tried again, and unknown errors may not', () => {
  for (const name of ['InternalServerError', 'ServiceUnavailable']) expect(isRepeatable(named(name))).toBe(true);
  for (const error of [named('Error'), named(''), named('Error', { code: 'EACCES' }), 'text', null, undefined, {}])
    expect(isRepeatable(error)).toBe(false);
});

it('a refusal without an item, a cancellation without reasons, and an own fault stay what they are', () => {
  expect(refusalOf(named('ConditionalCheckFailedException'))).toEqual({ kind: 'refused' });
  expect(cancellationOf(named('TransactionCanceledException'))).toBeUndefined();
  const own = faultOf(named('ValidationException'));
  expect(faultOf(own)).toBe(own);
  expect(own.message).toBe('DynamoDB: ValidationException');
});
