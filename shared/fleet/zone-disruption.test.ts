import { describe, expect, it } from 'vitest';
import { applyDisruption, disruptionVerdict, NO_DISRUPTION } from './zone-state.ts';

describe('disruptionVerdict', () => {
  it('is set when every listed zone is in full disruption, and cleared when one is not', () => {
    expect(disruptionVerdict(false, ['FullDisruption', 'FullDisruption'])).toBe('enter');
    expect(disruptionVerdict(false, ['FullDisruption', 'PartialDisruption'])).toBe('unchanged');
    expect(disruptionVerdict(true, ['FullDisruption', 'PartialDisruption'])).toBe('leave');
    expect(disruptionVerdict(true, ['FullDisruption'])).toBe('unchanged');
  });

  it('does not change while no zone is listed', () => {
    expect(disruptionVerdict(false, [])).toBe('unchanged');
    expect(disruptionVerdict(true, [])).toBe('unchanged');
  });
});

describe('applyDisruption', () => {
  it('starts a new grace period only when it is cleared', () => {
    const total = applyDisruption(NO_DISRUPTION, 'enter', 5_000);
    expect(total).toEqual({ total: true, sinceMs: 5_000, freshSinceMs: 0, startedAtMs: 5_000 });
    const left = { total: false, sinceMs: 9_000, freshSinceMs: 9_000, startedAtMs: 5_000 };
    expect(applyDisruption(total, 'leave', 9_000)).toEqual(left);
    expect(applyDisruption(total, 'unchanged', 9_000)).toBe(total);
  });
});
