import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { admitRequest } from './request-throttle.ts';

const LIMIT = { ratePerSecond: 2, burst: 3 };

function run(timesMs: readonly number[]): boolean[] {
  let fullAtMs: number | undefined;
  return timesMs.map((nowMs) => {
    const admission = admitRequest(fullAtMs, nowMs, LIMIT);
    if (admission.kind === 'admitted') fullAtMs = admission.fullAtMs;
    return admission.kind === 'admitted';
  });
}

describe('admitRequest', () => {
  it('lets a burst through, then the rate', () => {
    expect(run([0, 0, 0, 0, 499, 500, 500, 1_000])).toEqual([true, true, true, false, false, true, false, true]);
  });

  it('forgets a debt with time, and saves up no more than the burst', () => {
    expect(run([0, 0, 0, 60_000, 60_000, 60_000, 60_000])).toEqual([true, true, true, true, true, true, false]);
  });

  it('returns when to retry, in whole seconds', () => {
    const slow = { ratePerSecond: 0.2, burst: 1 };
    const first = admitRequest(undefined, 0, slow);
    expect(first).toEqual({ kind: 'admitted', fullAtMs: 5_000 });
    expect(admitRequest(5_000, 100, slow)).toEqual({ kind: 'refused', retryAfterSeconds: 5 });
    expect(admitRequest(5_000, 4_000, slow)).toEqual({ kind: 'refused', retryAfterSeconds: 1 });
    expect(admitRequest(5_000, 4_999, slow)).toEqual({ kind: 'refused', retryAfterSeconds: 1 });
    expect(admitRequest(5_000, 5_000, slow)).toEqual({ kind: 'admitted', fullAtMs: 10_000 });
    expect(admitRequest(1, 5_000, slow)).toEqual({ kind: 'admitted', fullAtMs: 10_000 });
  });

  it('admits in any window at most burst + rate × window', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10_000), { maxLength: 200 }), (steps) => {
        const times = steps.toSorted((a, b) => a - b);
        const admitted = times.filter((_, index) => run(times)[index]);
        for (const [index, from] of admitted.entries()) {
          for (const [further, to] of admitted.slice(index).entries()) {
            expect(further + 1).toBeLessThanOrEqual(LIMIT.burst + (LIMIT.ratePerSecond * (to - from)) / 1_000 + 1e-9);
          }
        }
      }),
      { numRuns: 50 },
    );
  });
});
