import { describe, expect, it } from 'vitest';
import { StoreFault } from '../store/item-store.ts';
import { statusOfFault } from './serve.ts';

const at = (fraction: number) => ({ fraction: () => fraction });

describe('the answer to a request that failed through a fault of ours', () => {
  it.each([
    ['throttled', 'the tables cannot accept the request at present, please try again'],
    ['unreachable', 'the tables did not answer in time, and may have accepted the request; please try again'],
    ['timeout', 'the tables did not answer in time, and may have accepted the request; please try again'],
  ] as const)('asks for another attempt where the tables are %s', (code, message) => {
    const fault = new StoreFault(code, 'item o#nodes#3', { retryable: true });
    const { status, cause } = statusOfFault(fault, at(0));
    expect(status).toMatchObject({
      code: 503,
      reason: 'ServiceUnavailable',
      message,
      details: { retryAfterSeconds: 1 },
    });
    expect(cause).toBe(fault);
    expect(statusOfFault(fault, at(0.999)).status.details?.retryAfterSeconds).toBe(3);
  });

  it.each([
    ['an item that is too large', new StoreFault('too-large', 'x', { retryable: false })],
    ['an error of the program', new TypeError('x is not a function')],
  ])('is 500 without detail and without another attempt for %s', (_what, fault) => {
    const { status, cause } = statusOfFault(fault, at(0));
    expect(status).toMatchObject({ code: 500, reason: 'InternalError' });
    expect(status.message).toBe('Internal error occurred: the request could not be completed');
    expect(status.details?.retryAfterSeconds).toBeUndefined();
    expect(cause).toBe(fault);
  });
});
