import { describe, expect, it } from 'vitest';
import { silenceHour } from '../../../test/support/silence-hour.ts';
import { recommendation } from './advice-text.ts';
import { adviseGrace } from './advise-grace.ts';
import type { SilenceHour } from './silence-hour.ts';

/** 29 days of 312 machines; every hour has these buckets. */
const advised = (counts: SilenceHour['counts'], limit = 1, graceSeconds = 40) => {
  const hours = Array.from({ length: 29 * 24 }, (_, index) => silenceHour({ index, nodes: 312, graceSeconds, counts }));
  return recommendation(adviseGrace(hours, limit)[0]!, limit);
};

describe('the recommendation', () => {
  it('names the grace period, its false marks, the bound and the change of detection', () => {
    expect(advised([])).toBe(
      '20 s would have marked none of 312 live machines in 29 days (bound 0.33 per 1,000 node-days) and shortens detection from 42.5 s to 22.5 s.',
    );
  });

  it('keeps the grace period in force if it is the shortest within the limit', () => {
    expect(advised([], 1, 20)).toBe(
      'Keep 20 s: it would have marked none of 312 live machines in 29 days (bound 0.33 per 1,000 node-days).',
    );
  });

  it('advises a longer one if live machines were marked', () => {
    // Silences of up to 55 s in each hour.
    expect(advised([[21, 3]])).toMatch(
      /^60 s would have marked none .* and lengthens detection from 42\.5 s to 62\.5 s\.$/,
    );
  });

  it('advises no change if none is within the limit, and says how much data is missing', () => {
    expect(advised([[48, 3]])).toMatch(/^No grace period up to 120 s stays within 1 false marks/);
    expect(advised([], 0.1)).toMatch(
      /^Too little data: 9048 node-days show at best a bound of 0\.33 .* 96 days of this fleet/,
    );
  });
});
