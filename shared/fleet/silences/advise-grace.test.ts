import { describe, expect, it } from 'vitest';
import { silenceHour } from '../../../test/support/silence-hour.ts';
import { adviseGrace } from './advise-grace.ts';
import { type SilenceHour, silenceBucketOf } from './silence-hour.ts';

/** An hour of 300 machines with these silences, in seconds. */
const hourOf = (index: number, silences: readonly number[] = [], more: Partial<SilenceHour> = {}): SilenceHour =>
  silenceHour({ index, counts: silences.map((seconds) => [silenceBucketOf(seconds), 1] as const), ...more });
const days = (count: number, silences: (hour: number) => readonly number[] = () => []): SilenceHour[] =>
  Array.from({ length: count * 24 }, (_, index) => hourOf(index, silences(index)));
const onlyAdvice = (hours: readonly SilenceHour[], limit = 1) => adviseGrace(hours, limit)[0]!;
const at = (advice: ReturnType<typeof onlyAdvice>, graceSeconds: number) =>
  advice.candidates.find((each) => each.graceSeconds === graceSeconds)!;

describe('the advice on the grace period', () => {
  it('is the shortest one that the policy allows, if no silence was long', () => {
    const advice = onlyAdvice(days(30));
    expect(advice.recommended?.graceSeconds).toBe(20);
    expect(at(advice, 15).allowed).toBe(false);
    expect(advice.nodeDays).toBe(9_000);
    expect(at(advice, 20)).toMatchObject({ falseMarks: 0, detectionP50Seconds: 22.5, detectionMaxSeconds: 25 });
    expect(at(advice, 20).boundPer1000NodeDays).toBeCloseTo(2.996 / 9, 3);
  });

  it('counts each silence that may have been longer than the candidate', () => {
    const advice = onlyAdvice(days(30, (hour) => (hour % 24 === 0 ? [20, 20.1, 33] : [])));
    expect([20, 25, 30, 40].map((grace) => at(advice, grace).falseMarks)).toEqual([60, 30, 30, 0]);
    expect(advice.recommended?.graceSeconds).toBe(40);
  });

  it('has a wider bound if silences come together', () => {
    const spread = onlyAdvice(days(30, (hour) => (hour % 12 === 0 ? [35] : [])));
    const together = onlyAdvice(days(30, (hour) => (hour === 5 ? Array.from({ length: 60 }, () => 35) : [])));
    expect(at(spread, 30).falseMarks).toBe(at(together, 30).falseMarks);
    expect(at(together, 30).boundPer1000NodeDays).toBeGreaterThan(2 * at(spread, 30).boundPer1000NodeDays);
  });

  it('recommends nothing from too little data, and nothing above the limit', () => {
    const few = onlyAdvice(days(5));
    expect(few.bestBoundPer1000NodeDays).toBeGreaterThan(1);
    expect(few.recommended).toBeUndefined();
    const bad = onlyAdvice(days(30, () => [300]));
    expect(bad.recommended).toBeUndefined();
    expect(bad.returned).toBe(720);
  });

  it('says which hours are missing, and adds what several processes have seen', () => {
    const half = { observedSeconds: 1_800, nodeSeconds: 300 * 1_800 };
    const hours = [hourOf(0), hourOf(1, [], half), hourOf(1, [], { ...half, slot: 99 }), hourOf(9, [], half)];
    expect(onlyAdvice(hours)).toMatchObject({ hours: 10, observedHours: 2.5, nodes: 300, nodeDays: 31.25 });
  });

  it('is one per profile', () => {
    const slow = { profile: 'slow', beatIntervalSeconds: 60, graceSeconds: 180 };
    const advice = adviseGrace([...days(30), ...days(30).map((hour) => ({ ...hour, ...slow }))], 1);
    expect(advice.map(({ profile, recommended }) => [profile, recommended?.graceSeconds])).toEqual([
      ['default', 20],
      ['slow', 120],
    ]);
  });
});
