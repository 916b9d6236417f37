import { describe, expect, it } from 'vitest';
import { bucketEndSeconds, SILENCE_BUCKETS, silenceBucketOf } from './silence-hour.ts';

describe('the buckets of silences', () => {
  it('hold a silence of exactly their end', () => {
    expect([0.1, 2.5, 2.501, 20, 20.001, 120].map(silenceBucketOf)).toEqual([0, 0, 1, 7, 8, 47]);
    expect([0, 7, 47].map(bucketEndSeconds)).toEqual([2.5, 20, 120]);
  });

  it('hold everything over two minutes in the last one', () => {
    expect([120.001, 599].map(silenceBucketOf)).toEqual([SILENCE_BUCKETS, SILENCE_BUCKETS]);
    expect(bucketEndSeconds(SILENCE_BUCKETS)).toBe(600);
  });
});
