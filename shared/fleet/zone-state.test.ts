import { describe, expect, it } from 'vitest';
import { defaultPolicy } from './policy.ts';
import { fleetMetricsOf, zoneMetricsOf, zoneRatePerSecond, zoneStateOf } from './zone-state.ts';

const stateOf = (ready: number, notReady: number) => zoneStateOf({ ready, notReady }, defaultPolicy);

describe('zoneStateOf', () => {
  it.each([
    [0, 0, 'Normal'],
    [0, 1, 'FullDisruption'],
    [1, 0, 'Normal'],
    [1, 2, 'Normal'],
    [1, 3, 'PartialDisruption'],
    [2, 3, 'PartialDisruption'],
    [3, 3, 'Normal'],
    [9, 11, 'PartialDisruption'],
  ] as const)('with %i ready and %i not ready is %s', (ready, notReady, state) => {
    expect(stateOf(ready, notReady)).toBe(state);
  });

  it('reaches a threshold that binary fractions miss', () => {
    for (let size = 10; size <= 1_000; size += 10) {
      const policy = { unhealthyZoneThreshold: 0.7 };
      const notReady = (size * 7) / 10;
      expect(zoneStateOf({ ready: size - notReady, notReady }, policy)).toBe('PartialDisruption');
    }
  });
});

describe('zoneRatePerSecond', () => {
  it('slows a large zone in partial disruption and stops a small one', () => {
    expect(zoneRatePerSecond('PartialDisruption', 51, defaultPolicy)).toBe(0.01);
    expect(zoneRatePerSecond('PartialDisruption', 50, defaultPolicy)).toBe(0);
  });

  it('stops evictions of a zone without a Ready node only if the policy requires it', () => {
    expect(zoneRatePerSecond('FullDisruption', 5, defaultPolicy)).toBe(0.1);
    expect(zoneRatePerSecond('FullDisruption', 5, { ...defaultPolicy, fullDisruption: 'hold' })).toBe(0);
  });
});

describe('zoneMetricsOf', () => {
  it('reports an empty zone as healthy', () => {
    expect(zoneMetricsOf('z', { ready: 0, notReady: 0 })).toEqual({
      zone: 'z',
      size: 0,
      healthPercent: 100,
      unhealthy: 0,
    });
  });
});

describe('what is measured of all zones together', () => {
  it('is the share of the zone with most nodes not ready, and how many zones are disrupted', () => {
    const zones = [
      zoneMetricsOf('a', { ready: 9, notReady: 1 }),
      zoneMetricsOf('b', { ready: 4, notReady: 6 }),
      zoneMetricsOf('c', { ready: 0, notReady: 1 }),
      zoneMetricsOf('d', { ready: 0, notReady: 0 }),
    ];
    expect(fleetMetricsOf(zones, defaultPolicy)).toEqual({ notReadyShareMaxPercent: 100, disruptedZones: 2 });
    expect(fleetMetricsOf(zones.slice(0, 2), defaultPolicy).notReadyShareMaxPercent).toBe(60);
    expect(fleetMetricsOf([], defaultPolicy)).toEqual({ notReadyShareMaxPercent: 0, disruptedZones: 0 });
  });
});
