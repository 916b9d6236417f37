import { describe, expect, it } from 'vitest';
import { cancellationOf, faultOf, refusalOf } from './errors.ts';

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
