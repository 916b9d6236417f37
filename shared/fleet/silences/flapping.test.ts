import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultPolicy, type Policy } from '../policy.ts';
import {
  countedMarks,
  type FlapHistory,
  flapHistoryOf,
  flappingState,
  flapsAfterMark,
  flapText,
  flapVerdict,
  packedFlaps,
} from './flapping.ts';

const START = Date.UTC(2026, 0, 1) / 1_000;
const policyWith = (fields: Partial<Policy> = {}): Policy => ({ ...defaultPolicy, ...fields });

/** Bytes after marks at these seconds. */
function afterMarks(seconds: readonly number[], policy = policyWith(), ownFaultsAtMs: readonly number[] = []) {
  let flaps: Uint8Array | undefined;
  for (const each of seconds) {
    flaps = flapsAfterMark(flaps, { nowMs: (START + each) * 1_000, policy, ownFaultsAtMs }) ?? flaps;
  }
  return flaps;
}

interface Case {
  readonly what: string;
  readonly marks: readonly number[];
  /** Seconds after the start. */
  readonly at: number;
  readonly policy?: Partial<Policy>;
  /** Begins of total disruption, and failures of the heartbeat path. Seconds. */
  readonly faults?: readonly number[];
  readonly mayBegin?: boolean;
  readonly isFlapping?: boolean;
  readonly verdict: 'unchanged' | 'begin' | 'end';
}

const cases: readonly Case[] = [
  { what: 'no mark', marks: [], at: 0, verdict: 'unchanged' },
  { what: 'two marks of three', marks: [0, 100], at: 105, verdict: 'unchanged' },
  { what: 'three marks', marks: [0, 100, 200], at: 205, verdict: 'begin' },
  { what: 'three marks, in the pass of the third', marks: [0, 100, 200], at: 200, verdict: 'unchanged' },
  { what: 'three marks over exactly the window', marks: [0, 1_800, 3_600], at: 3_605, verdict: 'begin' },
  { what: 'three marks over a second more', marks: [0, 1_800, 3_601], at: 3_605, verdict: 'unchanged' },
  { what: 'an old mark and three in the window', marks: [0, 3_601, 3_700, 3_800], at: 3_805, verdict: 'begin' },
  { what: 'three marks, seen when stable again', marks: [0, 100, 200], at: 800, verdict: 'unchanged' },
  { what: 'three marks with the gate closed', marks: [0, 100, 200], at: 205, mayBegin: false, verdict: 'unchanged' },
  { what: 'flapping, 599 s after the mark', marks: [200], at: 799, isFlapping: true, verdict: 'unchanged' },
  { what: 'flapping, 600 s after the mark', marks: [200], at: 800, isFlapping: true, verdict: 'end' },
  { what: 'stable with the gate closed', marks: [200], at: 800, isFlapping: true, mayBegin: false, verdict: 'end' },
  { what: 'another mark while flapping', marks: [200, 790], at: 800, isFlapping: true, verdict: 'unchanged' },
  { what: 'threshold 1', marks: [0], at: 5, policy: { flapThreshold: 1 }, verdict: 'begin' },
  { what: 'threshold 2', marks: [0, 60], at: 65, policy: { flapThreshold: 2 }, verdict: 'begin' },
  { what: 'four of five', marks: [0, 60, 120, 180], at: 185, policy: { flapThreshold: 5 }, verdict: 'unchanged' },
  { what: 'five', marks: [0, 60, 120, 180, 240], at: 245, policy: { flapThreshold: 5 }, verdict: 'begin' },
  { what: 'a short window', marks: [0, 60, 121], at: 125, policy: { flapWindowSeconds: 120 }, verdict: 'unchanged' },
  { what: 'off', marks: [0, 100, 200], at: 205, policy: { flapThreshold: 0 }, verdict: 'unchanged' },
  // Total disruption or a failing path at 230 s: the mark at 200 s was part of it.
  { what: 'a fault of ours after the last mark', marks: [0, 100, 200], at: 205, faults: [230], verdict: 'unchanged' },
  { what: 'a fault of ours 41 s later', marks: [0, 100, 200], at: 245, faults: [241], verdict: 'begin' },
  { what: 'a fault of ours after an earlier mark', marks: [0, 100, 200], at: 205, faults: [120], verdict: 'unchanged' },
  { what: 'a fault of ours before the marks', marks: [100, 200, 300], at: 305, faults: [99], verdict: 'begin' },
  { what: 'a fault of ours after the begin', marks: [200], at: 230, isFlapping: true, faults: [230], verdict: 'end' },
];

describe('flapping', () => {
  it.each(cases)('$what: $verdict', ({ marks, at, faults = [], mayBegin = true, isFlapping = false, ...rest }) => {
    const policy = policyWith(rest.policy);
    const nowMs = (START + at) * 1_000;
    const flaps = afterMarks(marks, policy.flapThreshold === 0 ? policyWith() : policy);
    const history = { ...flapHistoryOf(flaps, nowMs, policy), isFlapping };
    const ownFaultsAtMs = faults.map((each) => (START + each) * 1_000);
    expect(flapVerdict(history, { nowMs, policy, ownFaultsAtMs, mayBegin }).kind).toBe(rest.verdict);
  });

  it('ends when the policy no longer counts marks', () => {
    const policy = policyWith({ flapThreshold: 0 });
    const at = { nowMs: START * 1_000, policy, ownFaultsAtMs: [], mayBegin: true };
    expect(flapVerdict({ isFlapping: true, marksSeconds: [START] }, at)).toEqual({ kind: 'end' });
    expect(flapsAfterMark(undefined, at)).toBeUndefined();
    expect(flapText({ kind: 'end', sinceSeconds: undefined }, policy)).toContain('flapThreshold is 0');
  });

  it('forgets a discounted mark with the next mark', () => {
    const flaps = afterMarks([0, 100], policyWith());
    const next = flapsAfterMark(flaps, {
      nowMs: (START + 300) * 1_000,
      policy: policyWith(),
      ownFaultsAtMs: [(START + 130) * 1_000],
    });
    expect(flapHistoryOf(next, (START + 300) * 1_000, policyWith()).marksSeconds).toEqual([START + 300, START]);
  });

  it('discounts marks of the longest grace period of all profiles', () => {
    const profiles = [{ name: 'slow', nodeSelector: {}, nodeMonitorGracePeriodSeconds: 300 }];
    const history: FlapHistory = { isFlapping: false, marksSeconds: [START + 100, START] };
    const ownFaultsAtMs = [(START + 300) * 1_000];
    expect(countedMarks(history, { policy: policyWith({ profiles }), ownFaultsAtMs })).toEqual([]);
    expect(countedMarks(history, { policy: policyWith(), ownFaultsAtMs })).toHaveLength(2);
  });
});

describe('the marks in a row', () => {
  const marks = fc.array(fc.integer({ min: 20, max: 2_000 }), { minLength: 1, maxLength: 8 }).map((gaps) => {
    let at = 0;
    return gaps.map((gap) => {
      at += gap;
      return at;
    });
  });

  it('are 7 bytes, whatever their number and time', () => {
    fc.assert(
      fc.property(marks, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 60, max: 86_400 }), (seconds, t, w) => {
        expect(afterMarks(seconds, policyWith({ flapThreshold: t, flapWindowSeconds: w }))).toHaveLength(7);
      }),
    );
  });

  it('are the marks of the window: exact with a threshold of 3, and never too recent', () => {
    fc.assert(
      fc.property(
        marks,
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom(60, 600, 3_600, 4_094, 86_400),
        fc.boolean(),
        (seconds, flapThreshold, flapWindowSeconds, isFlapping) => {
          const policy = policyWith({ flapThreshold, flapWindowSeconds });
          const last = START + seconds.at(-1)!;
          const nowMs = last * 1_000 + 999;
          const history = flapHistoryOf(afterMarks(seconds, policy), nowMs, policy);
          const read = flapHistoryOf(packedFlaps({ ...history, isFlapping }, policy), nowMs, policy);
          expect(read).toEqual({ ...history, isFlapping });
          const exact = seconds
            .map((each) => START + each)
            .filter((each) => last - each <= flapWindowSeconds)
            .reverse()
            .slice(0, flapThreshold);
          const isExact = flapThreshold <= 3 && flapWindowSeconds <= 4_094;
          if (isExact) expect(read.marksSeconds).toEqual(exact);
          read.marksSeconds.forEach((each, index) => {
            expect(each).toBeLessThanOrEqual(exact[index]!);
            expect(exact[index]! - each).toBeLessThanOrEqual(flapWindowSeconds / 61);
          });
          expect(exact.length - read.marksSeconds.length).toBeLessThanOrEqual(isExact ? 0 : 1);
        },
      ),
    );
  });

  it('of an earlier threshold are read', () => {
    const nowMs = (START + 300) * 1_000;
    const flaps = afterMarks([0, 100, 200], policyWith({ flapThreshold: 5 }));
    const { marksSeconds } = flapHistoryOf(flaps, nowMs, policyWith({ flapThreshold: 2 }));
    expect(marksSeconds[0]).toBe(START + 200);
    expect(marksSeconds).toHaveLength(3);
    const next = flapsAfterMark(flaps, { nowMs, policy: policyWith({ flapThreshold: 2 }), ownFaultsAtMs: [] });
    expect(flapHistoryOf(next, nowMs, policyWith()).marksSeconds).toHaveLength(2);
  });

  it('are read after years, and with a clock behind that of the mark', () => {
    const year = 365 * 86_400;
    const flaps = afterMarks([0]);
    expect(flapHistoryOf(flaps, (START + 10 * year) * 1_000, policyWith()).marksSeconds).toEqual([START]);
    expect(flapHistoryOf(flaps, (START - 60) * 1_000, policyWith()).marksSeconds).toEqual([START]);
  });

  it.each<[string, readonly number[], readonly number[]]>([
    ['longer ago than the bytes can say', [0, -50_000], [0]],
    ['longer ago, with another one shortly before', [0, -50_000, -50_010], [0]],
    ['later than the one after it', [0, 100], [0]],
    ['near', [0, -100, -200], [0, -100, -200]],
  ])('end at a mark that is %s', (_, marks, expected) => {
    const policy = policyWith({ flapThreshold: 3, flapWindowSeconds: 600 });
    const marksSeconds = marks.map((each) => START + each);
    const packed = packedFlaps({ isFlapping: true, marksSeconds }, policy);
    const read = flapHistoryOf(packed, START * 1_000, policy);
    expect(read).toEqual({ isFlapping: true, marksSeconds: expected.map((each) => START + each) });
  });

  it('are none in bytes of another length', () => {
    const none = { isFlapping: false, marksSeconds: [] };
    expect(flapHistoryOf(Uint8Array.of(1, 2), 0, policyWith())).toEqual(none);
    expect(packedFlaps(none, policyWith())).toBeUndefined();
  });
});

describe('taint and condition', () => {
  const nowMs = START * 1_000;
  const begin = { kind: 'begin', marksSeconds: [START, START - 90, START - 300] } as const;

  it('follow the verdict; the taint of an earlier effect is replaced', () => {
    const foreign = { key: 'site', effect: 'NoSchedule' } as const;
    const old = { key: 'nodekeeper.dev/flapping', effect: 'NoSchedule' } as const;
    const policy = policyWith({ flapEffect: 'PreferNoSchedule' });
    const began = flappingState({ taints: [foreign, old], conditions: [] }, begin, { nowMs, policy });
    expect(began).toEqual({
      taints: [foreign, { key: 'nodekeeper.dev/flapping', effect: 'PreferNoSchedule' }],
      conditions: [
        {
          type: 'Flapping',
          status: 'True',
          reason: 'MarkedRepeatedly',
          message: 'Marked Unknown 3 times in 300 s (threshold 3 within 3600 s)',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    });
    const at = { nowMs: nowMs + 600_000, policy: policyWith() };
    expect(flappingState(began, { kind: 'end', sinceSeconds: START }, at)).toMatchObject({
      taints: [foreign],
      conditions: [{ status: 'False', message: 'No mark for 600 s', lastTransitionTime: '2026-01-01T00:10:00Z' }],
    });
  });
});

it('marks within a grace period before a fault of ours do not count, both ends included', () => {
  const grace = defaultPolicy.nodeMonitorGracePeriodSeconds;
  const counted = (mark: number) =>
    countedMarks(
      { isFlapping: false, marksSeconds: [mark] },
      { policy: policyWith(), ownFaultsAtMs: [(START + 100) * 1_000 + 999] },
    );
  const isCounted = (seconds: number) => counted(START + seconds).length === 1;
  expect([101, 100, 100 - grace, 99 - grace].map(isCounted)).toEqual([true, false, false, true]);
});

it('no mark is stored where the policy does not count them', () => {
  const at = { nowMs: START * 1_000, policy: policyWith({ flapThreshold: 0 }), ownFaultsAtMs: [] };
  expect(flapsAfterMark(undefined, at)).toBeUndefined();
  expect(
    flapsAfterMark(packedFlaps({ isFlapping: true, marksSeconds: [START - 1] }, policyWith()), at),
  ).toBeUndefined();
});
