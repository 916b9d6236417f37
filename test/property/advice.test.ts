/**
 * Fleets with known loss: the advice that rests on counted silences holds for them, with the probability of its bound.
 */
import { describe, expect, it } from 'vitest';
import { adviseGrace, type GraceAdvice } from '../../shared/fleet/silences/advise-grace.ts';
import { compareAdvice, countedHours, isMissed, type Loss } from '../support/known-loss-fleets.ts';

/** How often the true rate of a fleet is above the bound, over all grace periods. */
function misses(advised: (loss: Loss, random: () => number) => GraceAdvice): { missed: number; asked: number } {
  const comparisons = compareAdvice(advised);
  return { missed: comparisons.filter(isMissed).length, asked: comparisons.length };
}

describe('advice from counted silences', () => {
  it('is within its bound on fleets of known loss', () => {
    const { missed, asked } = misses((loss, random) => adviseGrace(countedHours(loss, random), 1)[0]!);
    expect(asked).toBe(100);
    expect(missed).toBeLessThanOrEqual(0.05 * asked);
  });

  it('is within its bound although another process has run the ticks of every second hour', () => {
    const { missed, asked } = misses((loss, random) => adviseGrace(countedHours(loss, random, 2), 1)[0]!);
    expect(missed).toBeLessThanOrEqual(0.05 * asked);
  });

  it('would be outside if silences were forgotten at each tick', () => {
    const { missed, asked } = misses((loss, random) => {
      const hours = countedHours(loss, random).map((hour) => ({ ...hour, counts: hour.counts.slice(0, 1) }));
      return adviseGrace(hours, 1)[0]!;
    });
    expect(missed).toBeGreaterThan(0.5 * asked);
  });
});
