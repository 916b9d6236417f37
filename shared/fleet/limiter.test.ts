import { describe, expect, it } from 'vitest';
import { changeRate, fullLimiter, takeToken, updatedLimiter } from '../../test/support/token-bucket.ts';
import { changeRateUpdates, type Limiter, takeTokenUpdate, tokenIntervalMs } from './limiter.ts';

const taken = (limiter: Limiter, nowMs: number): Limiter => {
  const after = takeToken(limiter, nowMs);
  if (after === undefined) throw new Error('denied');
  return after;
};

describe('takeTokenUpdate', () => {
  it('grants one token from a full bucket, and the next exactly one interval later', () => {
    const limiter = taken(fullLimiter(0.1), 5_000);
    expect(limiter.tatMs).toBe(15_000);
    expect(takeToken(limiter, 14_999)).toBeUndefined();
    expect(takeToken(limiter, 15_000)).toEqual({ tatMs: 25_000, ratePerSecond: 0.1 });
  });

  it('holds at most one token, however long it is idle', () => {
    const limiter = taken(taken(fullLimiter(0.1), 0), 1_000_000);
    expect(takeToken(limiter, 1_000_001)).toBeUndefined();
  });

  it('grants nothing at rate 0, which is not one per second', () => {
    expect(takeTokenUpdate({ nowMs: 1e12, ratePerSecond: 0 })).toBeUndefined();
    expect(takeToken(fullLimiter(1), 0)).toBeDefined();
  });

  it('refuses a caller that read an older rate', () => {
    const update = takeTokenUpdate({ nowMs: 0, ratePerSecond: 0.1 });
    expect(update && updatedLimiter(fullLimiter(0.01), update)).toBeUndefined();
    expect(update && updatedLimiter(fullLimiter(0.1), update)).toBeDefined();
  });

  it('rounds the interval up, never above the rate', () => {
    expect(tokenIntervalMs(0.3)).toBe(3_334);
    expect(tokenIntervalMs(0.1)).toBe(10_000);
    expect(tokenIntervalMs(100_000)).toBe(1);
    expect(tokenIntervalMs(-1)).toBe(Infinity);
  });
});

describe('changeRateUpdates', () => {
  it('keeps a full bucket full', () => {
    expect(takeToken(changeRate(fullLimiter(0.1), 0.01, 5_000), 5_000)).toBeDefined();
  });

  it('starts drained if the old bucket had no token', () => {
    const limiter = changeRate(taken(fullLimiter(0.01), 0), 0.1, 3_000);
    expect(takeToken(limiter, 12_999)).toBeUndefined();
    expect(takeToken(limiter, 13_000)).toBeDefined();
  });

  it('starts drained from never, also at one per second', () => {
    const limiter = changeRate(changeRate(fullLimiter(1), 0, 0), 1, 100_000);
    expect(takeToken(limiter, 100_999)).toBeUndefined();
    expect(takeToken(limiter, 101_000)).toBeDefined();
  });

  it('does not change at the same rate', () => {
    expect(changeRateUpdates({ nowMs: 0, fromPerSecond: 0.1, toPerSecond: 0.1 })).toEqual([]);
  });

  it('returns updates with conditions that exclude each other, whatever the bucket holds', () => {
    for (const tatMs of [undefined, 0, 5_000, 5_001, 99_000]) {
      for (const [fromPerSecond, toPerSecond] of [
        [0.1, 0.01],
        [0, 0.1],
        [0.1, 0],
      ] as const) {
        const updates = changeRateUpdates({ nowMs: 5_000, fromPerSecond, toPerSecond });
        const limiter = { tatMs, ratePerSecond: fromPerSecond };
        expect(updates.filter((update) => updatedLimiter(limiter, update) !== undefined)).toHaveLength(1);
      }
    }
  });
});
