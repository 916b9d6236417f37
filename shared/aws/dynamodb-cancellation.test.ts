import { expect, it } from 'vitest';
import { cancellationOf, faultOf } from './dynamodb-request.ts';

const cancelled = (...codes: string[]): Error =>
  Object.assign(new Error('cancelled'), {
    name: 'TransactionCanceledException',
    CancellationReasons: codes.map((Code) => ({ Code })),
  });

it('a conflict and an unknown code are contended', () => {
  expect(cancellationOf(cancelled('TransactionConflict', 'LaterCode'))).toEqual({ kind: 'contended' });
});

it('throttling and an unknown code are throttled', () => {
  expect(cancellationOf(cancelled('ThrottlingError', 'LaterCode'))).toEqual({ kind: 'throttled' });
});

it.each([null, undefined, 'text', {}, { name: 7 }])(
  'a thrown value without a name is a fault with its cause: %s',
  (error) => {
    expect(cancellationOf(error)).toBeUndefined();
    const fault = faultOf(error);
    expect(fault).toMatchObject({ code: 'unreachable', retryable: true, message: 'DynamoDB: unknown' });
    expect(fault.cause).toBe(error);
  },
);
