import { describe, expect, it } from 'vitest';
import { retryAfterWaitMs } from './backoff.ts';

describe('what an answer asks an agent to wait', () => {
  it('is the named time, bounded, and up to half of it more', () => {
    expect(retryAfterWaitMs({ status: 429, retryAfterMs: 2_000 }, 0)).toBe(2_000);
    expect(retryAfterWaitMs({ status: 503, retryAfterMs: 2_000 }, 0.5)).toBe(2_500);
    expect(retryAfterWaitMs({ status: 429, retryAfterMs: 3_600_000 }, 0)).toBe(10_000);
  });

  it('is anything from one to ten seconds when there were too many requests and no time is named', () => {
    expect([0, 0.5, 0.999].map((fraction) => retryAfterWaitMs({ status: 429 }, fraction))).toEqual([
      1_000, 5_500, 9_991,
    ]);
  });

  it.each([500, 503, 409, 301])('is nothing for a %i that names no time', (status) => {
    expect(retryAfterWaitMs({ status }, 0.5)).toBe(0);
  });
});
