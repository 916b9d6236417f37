/** L3: in any window of T seconds a zone gets at most 1 + rate·T taints, however many callers ask, race or die. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { changeRateUpdates, type Limiter, takeTokenUpdate } from '../../shared/fleet/limiter.ts';
import { fullLimiter, takeToken, updatedLimiter } from '../support/token-bucket.ts';

const rate = fc.constantFrom(0.01, 0.1, 0.3, 1, 3, 250);

/** The window between any two grants, both included, is the smallest one that contains the grants between them. */
function expectPaced(grantsMs: readonly number[], ratePerSecond: number, skewMs = 0): void {
  const sorted = [...grantsMs].sort((a, b) => a - b);
  for (let first = 0; first < sorted.length; first += 1) {
    for (let last = first; last < sorted.length; last += 1) {
      const windowMs = (sorted[last] as number) - (sorted[first] as number);
      const allowed = 1 + (ratePerSecond * (windowMs + 2 * skewMs)) / 1_000;
      expect(last - first + 1).toBeLessThanOrEqual(allowed + 1e-9);
    }
  }
}

const callTimes = fc
  .array(fc.integer({ min: 0, max: 60_000 }), { maxLength: 120 })
  .map((times) => times.sort((a, b) => a - b));

describe('L3 the rate of a limiter', () => {
  it('holds for any call times', () => {
    fc.assert(
      fc.property(rate, callTimes, (ratePerSecond, times) => {
        let limiter = fullLimiter(ratePerSecond);
        const grants: number[] = [];
        for (const nowMs of times) {
          const after = takeToken(limiter, nowMs);
          if (after === undefined) continue;
          limiter = after;
          grants.push(nowMs);
        }
        expectPaced(grants, ratePerSecond);
        // It is not slower than its rate: a caller gets a token one interval after the last grant.
        if (times.length > 0) expect(grants[0]).toBe(times[0]);
      }),
    );
  });

  it('holds when callers read the clock and then write in any order, and some never write', () => {
    fc.assert(
      fc.property(
        rate,
        fc.array(
          fc.record({
            nowMs: fc.integer({ min: 0, max: 30_000 }),
            writesAt: fc.integer({ min: 0, max: 5_000 }),
            twice: fc.boolean(),
            dies: fc.boolean(),
          }),
          { maxLength: 60 },
        ),
        (ratePerSecond, callers) => {
          let limiter: Limiter = fullLimiter(ratePerSecond);
          const grants: number[] = [];
          const writes = callers
            .flatMap((caller) => (caller.twice ? [caller, caller] : [caller]))
            .filter((caller) => !caller.dies)
            .sort((a, b) => a.nowMs + a.writesAt - (b.nowMs + b.writesAt));
          for (const { nowMs } of writes) {
            const after = takeToken(limiter, nowMs);
            if (after === undefined) continue;
            limiter = after;
            grants.push(nowMs);
          }
          expectPaced(grants, ratePerSecond);
        },
      ),
    );
  });

  it('holds through changes of the rate, also for callers that have not read the change', () => {
    const rates = fc.constantFrom(0, 0.01, 0.1, 1);
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.record({
              kind: fc.constant('take' as const),
              afterMs: fc.integer({ min: 0, max: 9_000 }),
              knows: rates,
            }),
            fc.record({ kind: fc.constant('change' as const), afterMs: fc.integer({ min: 0, max: 9_000 }), to: rates }),
          ),
          { maxLength: 100 },
        ),
        (steps) => {
          let limiter: Limiter = fullLimiter(1);
          let nowMs = 0;
          const grants: { atMs: number; ratePerSecond: number }[] = [];
          for (const step of steps) {
            nowMs += step.afterMs;
            const updates =
              step.kind === 'take'
                ? [takeTokenUpdate({ nowMs, ratePerSecond: step.knows })]
                : changeRateUpdates({ nowMs, fromPerSecond: limiter.ratePerSecond, toPerSecond: step.to });
            for (const update of updates) {
              const next = update && updatedLimiter(limiter, update);
              if (next === undefined) continue;
              limiter = next;
              if (step.kind === 'take') grants.push({ atMs: nowMs, ratePerSecond: limiter.ratePerSecond });
              break;
            }
          }
          // The second of two consecutive grants comes at least one interval of its own rate after the first, or one
          // of the first's rate: the one that filled the bucket.
          for (let index = 1; index < grants.length; index += 1) {
            const earlier = grants[index - 1] as { atMs: number; ratePerSecond: number };
            const later = grants[index] as { atMs: number; ratePerSecond: number };
            expect(later.atMs - earlier.atMs).toBeGreaterThanOrEqual(1_000 / Math.max(earlier.ratePerSecond, 1));
          }
          const inForce = steps.flatMap((step) => (step.kind === 'change' ? [step.to] : []));
          expectPaced(
            grants.map(({ atMs }) => atMs),
            Math.max(1, ...inForce),
          );
        },
      ),
    );
  });

  it('is exceeded at most by the difference of the clocks, however long it runs', () => {
    const skewMs = 1_000;
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            trueMs: fc.integer({ min: 0, max: 120_000 }),
            skew: fc.integer({ min: -skewMs, max: skewMs }),
          }),
          { maxLength: 200 },
        ),
        (calls) => {
          let limiter: Limiter = fullLimiter(0.1);
          const grants: number[] = [];
          for (const { trueMs, skew } of calls.sort((a, b) => a.trueMs - b.trueMs)) {
            const after = takeToken(limiter, trueMs + skew);
            if (after === undefined) continue;
            limiter = after;
            grants.push(trueMs);
          }
          expectPaced(grants, 0.1, skewMs);
        },
      ),
    );
  });
});
