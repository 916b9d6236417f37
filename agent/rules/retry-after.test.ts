import { expect, it } from 'vitest';
import { retryAfter } from './retry-after.ts';

const SERVER_MS = Date.UTC(2026, 9, 21, 7, 28);

it.each([
  [undefined, undefined],
  ['', undefined],
  ['0', 0],
  ['7', 7_000],
  [' 120 ', 120_000],
  ['999999999', 999_999_999_000],
  ['1234567890', undefined],
  ['5x', undefined],
  ['-5', undefined],
  ['1.5', undefined],
  ['Wed, 21 Oct 2026 07:28:30 GMT', 30_000],
  ['Wed, 21 Oct 2026 07:28:30 GMT ', 30_000],
  ['Wed, 21 Oct 2026 07:27:30 GMT', 0],
  ['Wed, 21 Oct 2026 07:28:30 GMT+0100', undefined],
  ['21 Oct 2026', undefined],
  ['at 7:28 GMT', undefined],
])('Retry-After %j is %s ms', (text, milliseconds) => {
  expect(retryAfter(text, SERVER_MS)).toBe(milliseconds);
});

it('a date says nothing while the time of the server is unknown', () => {
  expect(retryAfter('Wed, 21 Oct 2026 07:28:30 GMT', undefined)).toBeUndefined();
  expect(retryAfter('7', undefined)).toBe(7_000);
});
