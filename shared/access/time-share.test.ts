import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { admitTime, chargeTime, sharedTime, type TimeShare } from './request-throttle.ts';

/** A tenth of the time; 200 ms at once. */
const LIMIT: TimeShare = { share: 0.1, burstMs: 200, waitMsMax: 25 };

/** A sender with one request at a time that sends the next one at once: milliseconds of its admitted requests. */
function usedBy(requestMs: number, throughMs: number): number {
  let fullAtMs: number | undefined;
  let used = 0;
  for (let nowMs = 0; nowMs < throughMs; ) {
    if (admitTime(fullAtMs, nowMs, LIMIT).kind === 'refused') {
      nowMs += 1;
      continue;
    }
    nowMs += requestMs;
    used += requestMs;
    fullAtMs = chargeTime(fullAtMs, { busyMs: requestMs, elapsedMs: requestMs }, { nowMs, limit: LIMIT });
  }
  return used;
}

describe('the share of the time of an identity', () => {
  it('admits a burst, then the share, however long the requests are', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), (requestMs) => {
        // The burst, the share of a minute, and one request that overdraws.
        expect(usedBy(requestMs, 60_000)).toBeLessThanOrEqual(200 + 0.1 * 60_000 + 2 * requestMs);
      }),
      { numRuns: 50 },
    );
  });

  it('returns when to retry, in whole seconds, and at most half a minute for one very long request', () => {
    const afterUse = (busyMs: number) =>
      admitTime(chargeTime(undefined, { busyMs, elapsedMs: busyMs }, { nowMs: 0, limit: LIMIT }), 0, LIMIT);
    expect(afterUse(200)).toEqual({ kind: 'admitted' });
    expect(afterUse(201)).toEqual({ kind: 'refused', retryAfterSeconds: 1 });
    expect(afterUse(500)).toEqual({ kind: 'refused', retryAfterSeconds: 3 });
    expect(afterUse(600_000)).toEqual({ kind: 'refused', retryAfterSeconds: 30 });
  });

  it('counts a wait for slow tables up to its bound, and all of a usual wait', () => {
    const paid = (elapsedMs: number) => chargeTime(undefined, { busyMs: 2, elapsedMs }, { nowMs: 0, limit: LIMIT });
    expect(paid(12)).toBeCloseTo(120);
    expect(paid(2_000)).toBeCloseTo(270);
  });

  it('admits one request per second while each waits for tables that do not answer', () => {
    const limit: TimeShare = { share: 0.05, burstMs: 1_000, waitMsMax: 25 };
    let fullAtMs: number | undefined;
    for (let nowMs = 0; nowMs < 600_000; nowMs += 1_000) {
      expect(admitTime(fullAtMs, nowMs, limit)).toEqual({ kind: 'admitted' });
      fullAtMs = chargeTime(fullAtMs, { busyMs: 3, elapsedMs: 6_000 }, { nowMs: nowMs + 900, limit });
    }
  });

  it('is not used up by a clock that was set back', () => {
    const fullAtMs = chargeTime(undefined, { busyMs: 1, elapsedMs: -3_600_000 }, { nowMs: 3_600_000, limit: LIMIT });
    expect(fullAtMs).toBeCloseTo(3_600_010);
    expect(admitTime(fullAtMs, 0, LIMIT)).toEqual({ kind: 'refused', retryAfterSeconds: 30 });
  });
});

it('charges a request all of the time in which it is served alone, and half of what it shares with another', () => {
  let busyMs = 100;
  const time = sharedTime(() => busyMs);
  busyMs += 7;
  const first = time.begin();
  busyMs += 10;
  const second = time.begin();
  busyMs += 20;
  expect(first.end()).toBe(20);
  busyMs += 5;
  expect(second.end()).toBe(15);
  expect(second.end()).toBe(15);
});

it('charges all requests together what was computed while there were any', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ busyMs: fc.nat(100), ends: fc.boolean(), which: fc.nat() }), { maxLength: 60 }),
      (steps) => {
        let busyMs = 0;
        const time = sharedTime(() => busyMs);
        const open: { end(): number }[] = [];
        let expected = 0;
        let charged = 0;
        for (const step of steps) {
          busyMs += step.busyMs;
          if (open.length > 0) expected += step.busyMs;
          if (step.ends && open.length > 0) charged += open.splice(step.which % open.length, 1)[0]!.end();
          else open.push(time.begin());
        }
        for (const sharer of open) charged += sharer.end();
        expect(charged).toBeCloseTo(expected, 6);
      },
    ),
  );
});
