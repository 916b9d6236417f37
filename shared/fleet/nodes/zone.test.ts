import { describe, expect, it } from 'vitest';
import { isExcluded, zoneKeyOf } from './zone.ts';

describe('zoneKeyOf', () => {
  it('is empty for a node without zone and region', () => {
    expect(zoneKeyOf(undefined)).toBe('');
    expect(zoneKeyOf({ 'kubernetes.io/os': 'linux' })).toBe('');
  });

  it('is the zone alone without a region, and region/zone with one', () => {
    expect(zoneKeyOf({ 'topology.kubernetes.io/zone': 'a' })).toBe('a');
    expect(zoneKeyOf({ 'topology.kubernetes.io/zone': 'a', 'topology.kubernetes.io/region': 'r' })).toBe('r/a');
  });

  it('distinguishes a region without zone from a zone of the same name', () => {
    expect(zoneKeyOf({ 'topology.kubernetes.io/region': 'r' })).toBe('r/');
    expect(zoneKeyOf({ 'topology.kubernetes.io/zone': 'r' })).toBe('r');
  });
});

describe('isExcluded', () => {
  it('depends on the presence of the label, not on its value', () => {
    expect(isExcluded({ 'node.kubernetes.io/exclude-disruption': '' })).toBe(true);
    expect(isExcluded({ 'node.kubernetes.io/exclude-disruption': 'false' })).toBe(true);
    expect(isExcluded({})).toBe(false);
    expect(isExcluded(undefined)).toBe(false);
  });
});
