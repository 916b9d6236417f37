import { describe, expect, it } from 'vitest';
import { retryAfter } from './retry-after.ts';

describe('Retry-After', () => {
  const serverTimeMs = Date.parse('2026-01-01T00:00:00Z');
  it.each([
    ['7', 7_000],
    ['0', 0],
    ['Thu, 01 Jan 2026 00:00:05 GMT', 5_000],
    ['Wed, 31 Dec 2025 23:00:00 GMT', 0],
    ['soon', undefined],
    ['-1', undefined],
    [undefined, undefined],
  ])('%s is %s ms', (text, milliseconds) => {
    expect(retryAfter(text, serverTimeMs)).toBe(milliseconds);
  });
});
