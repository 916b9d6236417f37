import { describe, expect, it } from 'vitest';
import { applyDisruption, disruptionVerdict, NO_DISRUPTION } from './disruption.ts';

describe('disruptionVerdict', () => {
  it('is entered when every listed zone is dark, and left when one is not', () => {
    expect(disruptionVerdict(false, ['FullDisruption', 'FullDisruption'])).toBe('enter');
    expect(disruptionVerdict(false, ['FullDisruption', 'PartialDisruption'])).toBe('unchanged');
    expect(disruptionVerdict(true, ['FullDisruption', 'PartialDisruption'])).toBe('leave');
    expect(disruptionVerdict(true, ['FullDisruption'])).toBe('unchanged');
  });

  it('stays as it is while no zone is listed', () => {
    expect(disruptionVerdict(false, [])).toBe('unchanged');
    expect(disruptionVerdict(true, [])).toBe('unchanged');
  });
});

describe('applyDisruption', () => {
  it('gives a fresh grace on leaving only', () => {
    const total = applyDisruption(NO_DISRUPTION, 'enter', 5_000);
    expect(total).toEqual({ total: true, sinceMs: 5_000, freshSinceMs: 0 });
    expect(applyDisruption(total, 'leave', 9_000)).toEqual({ total: false, sinceMs: 9_000, freshSinceMs: 9_000 });
    expect(applyDisruption(total, 'unchanged', 9_000)).toBe(total);
  });
});
