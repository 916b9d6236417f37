import { expect, it } from 'vitest';
import { StartError } from '../../shared/host/start-error.ts';
import { accountConcurrency } from './account-concurrency.ts';

it('throttles at the limit that all functions without a reservation share, until one has ended', () => {
  const account = accountConcurrency(2, new Map());
  const first = account.begin('api');
  expect(account.begin('watch')).toBeDefined();
  expect(account.begin('heartbeat')).toBeUndefined();
  first?.end();
  expect(account.begin('heartbeat')).toBeDefined();
  expect(account.report).toEqual({ limit: 2, inUse: 2, mostInUse: 2 });
});

it('keeps a reservation for its function, and never exceeds it', () => {
  const account = accountConcurrency(102, new Map([['watch', 2]]));
  for (let index = 0; index < 100; index += 1) expect(account.begin('api')).toBeDefined();
  expect(account.begin('api')).toBeUndefined();
  expect([account.begin('watch'), account.begin('watch')]).not.toContain(undefined);
  expect(account.begin('watch')).toBeUndefined();
});

it('refuses reservations that leave less than 100 executions unreserved, as Lambda does', () => {
  expect(() => accountConcurrency(10, new Map([['watch', 1]]))).toThrow(StartError);
  expect(() => accountConcurrency(150, new Map([['watch', 51]]))).toThrow(/at least 100 unreserved/);
});

it('changes reservations while it runs: 0 stops a function, and in a new account nothing else can be reserved', () => {
  const account = accountConcurrency(102, new Map());
  const held = account.begin('watch');
  expect(account.reserve('watch', 3)).toBe(false);
  expect(account.reserve('watch', 1)).toBe(true);
  expect(account.begin('watch')).toBeDefined();
  expect(account.begin('watch')).toBeUndefined();
  held?.end();
  for (let index = 0; index < 101; index += 1) expect(account.begin('api'), String(index)).toBeDefined();
  expect(account.begin('api')).toBeUndefined();
  const small = accountConcurrency(10, new Map());
  expect([small.reserve('watch', 1), small.reserve('watch', 0)]).toEqual([false, true]);
  expect(small.begin('watch')).toBeUndefined();
  expect(small.reserve('watch', undefined)).toBe(true);
  expect(small.begin('watch')).toBeDefined();
});
