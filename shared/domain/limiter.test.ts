import { describe, expect, it } from 'vitest';
import type { UpdateWrite } from '../ports/item-store.ts';
import {
  applyLimiterUpdate,
  changeRate,
  changeRateUpdates,
  fullLimiter,
  type Limiter,
  takeToken,
  takeTokenUpdates,
  tokenIntervalMs,
} from './limiter.ts';

const granted = (limiter: Limiter, nowMs: number): Limiter => {
  const outcome = takeToken(limiter, nowMs);
  if (outcome.kind === 'denied') throw new Error('denied');
  return outcome.limiter;
};

describe('takeToken', () => {
  it('gives one token from a full bucket, and the next exactly one interval later', () => {
    const limiter = granted(fullLimiter(0.1), 5_000);
    expect(takeToken(limiter, 5_000)).toEqual({ kind: 'denied', untilMs: 15_000 });
    expect(takeToken(limiter, 14_999).kind).toBe('denied');
    expect(takeToken(limiter, 15_000).kind).toBe('granted');
  });

  it('saves up no more than one token, however long it is idle', () => {
    const limiter = granted(granted(fullLimiter(0.1), 0), 1_000_000);
    expect(takeToken(limiter, 1_000_001).kind).toBe('denied');
  });

  it('never gives one at rate 0, and tells never from one a second', () => {
    expect(takeToken(fullLimiter(0), 1e12)).toEqual({ kind: 'denied', untilMs: undefined });
    expect(takeTokenUpdates({ nowMs: 0, ratePerSecond: 0 })).toEqual([]);
    expect(takeToken(fullLimiter(1), 0).kind).toBe('granted');
  });

  it('refuses a caller that knows an older rate', () => {
    const [update] = takeTokenUpdates({ nowMs: 0, ratePerSecond: 0.1 });
    expect(update && applyLimiterUpdate(fullLimiter(0.01), update)).toBeUndefined();
  });

  it('rounds the interval up, never above the rate', () => {
    expect(tokenIntervalMs(0.3)).toBe(3_334);
    expect(tokenIntervalMs(0.1)).toBe(10_000);
    expect(tokenIntervalMs(100_000)).toBe(1);
    expect(tokenIntervalMs(-1)).toBe(Infinity);
  });
});

describe('the updates', () => {
  it('can be handed to the item store as they are', () => {
    const key = { table: 'control', pk: 'zone#a', sk: '-' } as const;
    const writes: UpdateWrite[] = [
      ...takeTokenUpdates({ nowMs: 5_000, ratePerSecond: 0.1, burst: 2 }),
      ...changeRateUpdates({ nowMs: 5_000, fromPerSecond: 0.1, toPerSecond: 0.01 }),
    ].map((update) => ({ kind: 'update', key, ...update }));
    expect(writes[0]).toEqual({
      kind: 'update',
      key,
      set: { tatMs: 15_000 },
      when: {
        kind: 'all',
        of: [
          { kind: 'compare', attribute: 'ratePerSecond', op: '=', value: 0.1 },
          {
            kind: 'any',
            of: [
              { kind: 'lacks', attribute: 'tatMs' },
              { kind: 'compare', attribute: 'tatMs', op: '<=', value: 5_000 },
            ],
          },
        ],
      },
    });
    expect(writes).toHaveLength(4);
  });
});

describe('takeTokenUpdates with a burst', () => {
  it('adds a second update for the partly used bucket, which refuses what would overflow', () => {
    let limiter: Limiter = fullLimiter(1);
    let grants = 0;
    for (let attempt = 0; attempt < 5; attempt += 1) {
      for (const update of takeTokenUpdates({ nowMs: 0, ratePerSecond: 1, burst: 3 })) {
        const next = applyLimiterUpdate(limiter, update);
        if (next === undefined) continue;
        limiter = next;
        grants += 1;
        break;
      }
    }
    expect(grants).toBe(3);
    expect(limiter.tatMs).toBe(3_000);
  });

  it('is one update with a burst of one', () => {
    expect(takeTokenUpdates({ nowMs: 0, ratePerSecond: 0.1 })).toHaveLength(1);
  });
});

describe('changeRate', () => {
  it('keeps a full bucket full', () => {
    expect(takeToken(changeRate(fullLimiter(0.1), 0.01, 5_000), 5_000).kind).toBe('granted');
  });

  it('starts drained where the old bucket could give nothing', () => {
    const limiter = changeRate(granted(fullLimiter(0.01), 0), 0.1, 3_000);
    expect(takeToken(limiter, 12_999).kind).toBe('denied');
    expect(takeToken(limiter, 13_000).kind).toBe('granted');
  });

  it('starts drained from never, also at one a second', () => {
    const limiter = changeRate(changeRate(fullLimiter(1), 0, 0), 1, 100_000);
    expect(takeToken(limiter, 100_999).kind).toBe('denied');
    expect(takeToken(limiter, 101_000).kind).toBe('granted');
  });

  it('is no change at the same rate', () => {
    expect(changeRateUpdates({ nowMs: 0, fromPerSecond: 0.1, toPerSecond: 0.1 })).toEqual([]);
  });

  it('offers updates of which exactly one holds, whatever the bucket', () => {
    for (const tatMs of [undefined, 0, 5_000, 5_001, 99_000]) {
      for (const [fromPerSecond, toPerSecond] of [
        [0.1, 0.01],
        [0, 0.1],
        [0.1, 0],
      ] as const) {
        const updates = changeRateUpdates({ nowMs: 5_000, fromPerSecond, toPerSecond });
        const limiter = { tatMs, ratePerSecond: fromPerSecond };
        expect(updates.filter((update) => applyLimiterUpdate(limiter, update) !== undefined)).toHaveLength(1);
      }
    }
  });
});
