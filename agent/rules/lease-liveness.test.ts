import { describe, expect, it } from 'vitest';
import { leaseLoopComplaint } from './lease-liveness.ts';

describe('the liveness of the lease loop', () => {
  it('allows six intervals between the ends of two rounds', () => {
    expect(leaseLoopComplaint(1_000, 61_000, 10_000)).toBeUndefined();
    expect(leaseLoopComplaint(1_000, 61_001, 10_000)).toBe('no round of the lease loop ended for 60 s');
  });
});
