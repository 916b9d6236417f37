import { describe, expect, it } from 'vitest';
import { type SpamBucket, spendEventToken } from './event-spam.ts';

/** Number of events in a row that may be sent at this time, and the bucket after them. */
function burst(start: SpamBucket | undefined, atMs: number) {
  let bucket = start;
  for (let allowed = 0; ; allowed += 1) {
    const spent = spendEventToken(bucket, atMs);
    bucket = spent.bucket;
    if (!spent.isAllowed) return { allowed, bucket };
  }
}

describe('the limit of events about one object', () => {
  it('allows 25 in a row, then one in 5 minutes', () => {
    const first = burst(undefined, 1_000);
    expect(first.allowed).toBe(25);
    expect(burst(first.bucket, 300_999).allowed).toBe(0);
    expect(burst(first.bucket, 301_000).allowed).toBe(1);
    expect(burst(first.bucket, 901_500).allowed).toBe(3);
  });

  it('never allows more than 25 in a row', () => {
    const { bucket } = burst(undefined, 0);
    expect(burst(bucket, 30 * 86_400_000).allowed).toBe(25);
  });

  it('keeps the part of an interval that has passed', () => {
    const { bucket } = burst(burst(undefined, 0).bucket, 450_000);
    expect(burst(bucket, 600_000).allowed).toBe(1);
  });
});
