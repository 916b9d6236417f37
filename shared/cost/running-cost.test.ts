import { describe, expect, it } from 'vitest';
import { runningDollarsPerDay } from './running-cost.ts';

const fleet = { nodes: 1_000, beatsPerSecond: 100, periodSeconds: 5, tickReadUnits: 40, tickWriteUnits: 1 };

describe('what a cluster costs while it runs', () => {
  it('is beats, status posts and ticks at list price', () => {
    // 8.64 M beats at $1.8583 a million, 288,000 posts at $2.2417, 17,280 ticks at $6.158.
    expect(runningDollarsPerDay(fleet)).toBeCloseTo(16.056 + 0.646 + 0.106, 2);
  });

  it('is a tick alone without nodes', () => {
    expect(runningDollarsPerDay({ ...fleet, nodes: 0, beatsPerSecond: 0 })).toBeCloseTo(0.106, 3);
  });

  it('grows with the fleet and with haste', () => {
    const dollars = runningDollarsPerDay(fleet);
    expect(runningDollarsPerDay({ ...fleet, nodes: 2_000, beatsPerSecond: 200 })).toBeGreaterThan(1.9 * dollars);
    expect(runningDollarsPerDay({ ...fleet, beatsPerSecond: 50 })).toBeLessThan(0.6 * dollars);
  });
});
