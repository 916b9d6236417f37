import { describe, expect, it } from 'vitest';
import { hashOfKey, partitionCapacity, type TableCapacity } from './partition-capacity.ts';

const ON_DEMAND: TableCapacity = { mode: 'onDemand' };

/** Writes of one unit on a key that are served from `fromMs` on, `perSecond` attempts per second. */
function served(
  capacity: ReturnType<typeof partitionCapacity>,
  key: string,
  { fromMs = 0, seconds, perSecond }: { fromMs?: number; seconds: number; perSecond: number },
): number {
  let count = 0;
  for (let attempt = 0; attempt < seconds * perSecond; attempt += 1) {
    const nowMs = fromMs + (attempt * 1_000) / perSecond;
    if (capacity.refusal(key, 'write', nowMs) !== undefined) continue;
    capacity.consume(key, 'write', 1, nowMs);
    count += 1;
  }
  return count;
}

describe('a partition', () => {
  it('serves 1,000 write units per second for one key, and one second of them at once', () => {
    const capacity = partitionCapacity(ON_DEMAND, 0);
    expect(served(capacity, 'hot', { seconds: 10, perSecond: 2_000 })).toBeGreaterThanOrEqual(10_000);
    expect(served(capacity, 'hot', { fromMs: 10_000, seconds: 10, perSecond: 2_000 })).toBeLessThanOrEqual(10_001);
    expect(capacity.refusal('hot', 'write', 19_999.9)).toBe('KeyRangeThroughputExceeded');
  });

  it('refuses writes while it serves reads', () => {
    const capacity = partitionCapacity(ON_DEMAND, 0);
    capacity.consume('hot', 'write', 5_000, 0);
    expect(capacity.refusal('hot', 'write', 0)).toBe('KeyRangeThroughputExceeded');
    expect(capacity.refusal('hot', 'read', 0)).toBeUndefined();
  });

  it('pays for a large request afterwards', () => {
    const capacity = partitionCapacity(ON_DEMAND, 0);
    capacity.consume('hot', 'write', 3_000, 0);
    expect(capacity.refusal('hot', 'write', 2_000)).toBe('KeyRangeThroughputExceeded');
    expect(capacity.refusal('hot', 'write', 2_001)).toBeUndefined();
  });
});

describe('a table', () => {
  it('starts with the partitions that its warm throughput needs', () => {
    expect(partitionCapacity(ON_DEMAND, 0).partitions).toBe(4);
    const warm = { readUnitsPerSecond: 12_000, writeUnitsPerSecond: 20_000 };
    expect(partitionCapacity({ mode: 'onDemand', warm }, 0).partitions).toBe(20);
    const provisioned = { readUnitsPerSecond: 9_001, writeUnitsPerSecond: 10 };
    expect(partitionCapacity({ mode: 'provisioned', provisioned }, 0).partitions).toBe(4);
  });

  it('spreads the units of a scan over all partitions', () => {
    const capacity = partitionCapacity(ON_DEMAND, 0);
    capacity.consume(undefined, 'read', 11_999, 0);
    expect(capacity.refusal('any', 'read', 0)).toBeUndefined();
    capacity.consume(undefined, 'read', 2, 0);
    expect(capacity.refusal('any', 'read', 0)).toBe('KeyRangeThroughputExceeded');
  });

  it('splits a partition that refuses for minutes; hot keys in its two halves then have twice the capacity', () => {
    const capacity = partitionCapacity(
      { mode: 'onDemand', warm: { readUnitsPerSecond: 1, writeUnitsPerSecond: 1 } },
      0,
    );
    const keys = Array.from({ length: 100 }, (_, index) => `key-${index}`);
    const low = keys.find((key) => hashOfKey(key) < 2 ** 31)!;
    const high = keys.find((key) => hashOfKey(key) >= 2 ** 31)!;
    for (let second = 0; second < 180; second += 1) {
      expect(capacity.partitions).toBe(1);
      capacity.consume(low, 'write', 1_000, second * 1_000);
      expect(capacity.refusal(high, 'write', second * 1_000)).toBe('KeyRangeThroughputExceeded');
    }
    expect(capacity.partitions).toBe(2);
    capacity.consume(low, 'write', 1_000, 181_000);
    expect(capacity.refusal(low, 'write', 181_000)).toBe('KeyRangeThroughputExceeded');
    expect(capacity.refusal(high, 'write', 181_000)).toBeUndefined();
  });

  it('serves its provisioned units, and those that it left unused for 300 s', () => {
    const provisioned = { readUnitsPerSecond: 2, writeUnitsPerSecond: 2 };
    const capacity = partitionCapacity({ mode: 'provisioned', provisioned }, 0);
    capacity.consume('key', 'write', 599, 0);
    expect(capacity.refusal('key', 'write', 0)).toBeUndefined();
    capacity.consume('key', 'write', 3, 0);
    expect(capacity.refusal('key', 'write', 1_000)).toBe('ProvisionedThroughputExceeded');
    expect(capacity.refusal('key', 'write', 1_100)).toBeUndefined();
  });
});
