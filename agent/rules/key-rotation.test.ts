import { describe, expect, it } from 'vitest';
import { firstLookMs, isWorthATry, nextRotationStep, type RotationGround } from './key-rotation.ts';

const DAY = 86_400_000;
const PERIOD = 30 * DAY;
const [OLD, NEW, FOREIGN] = ['old', 'new', 'foreign'].map((keyId) => ({ keyId, addedAtMs: 0 })) as [Key, Key, Key];
type Key = RotationGround['enrolled'][number];

const stepOf = (ground: Partial<RotationGround>) =>
  nextRotationStep({ enrolled: [OLD], currentKeyId: 'old', periodMs: PERIOD, nowMs: PERIOD, ...ground });
const kindOf = (ground: Partial<RotationGround>) => stepOf(ground).kind;

describe('the next step of a rotation', () => {
  it('goes from one key to the other, each step by what is there alone', () => {
    expect(kindOf({})).toBe('make');
    expect(kindOf({ nextKeyId: 'new' })).toBe('enrol');
    expect(kindOf({ nextKeyId: 'new', enrolled: [OLD, NEW], provenKeyId: 'old' })).toBe('prove');
    expect(kindOf({ nextKeyId: 'new', enrolled: [OLD, NEW], provenKeyId: 'new' })).toBe('adopt');
    expect(kindOf({ currentKeyId: 'new', enrolled: [OLD, NEW] })).toBe('drop');
    expect(stepOf({ currentKeyId: 'new', enrolled: [{ keyId: 'new', addedAtMs: PERIOD }] })).toEqual({
      kind: 'wait',
      forMs: DAY,
    });
  });

  it('adopts a key that alone is enrolled, once it is proven, though the disk still has the old one', () => {
    expect(kindOf({ nextKeyId: 'new', enrolled: [NEW] })).toBe('prove');
    expect(kindOf({ nextKeyId: 'new', enrolled: [NEW], provenKeyId: 'new' })).toBe('adopt');
  });

  it('finishes what was begun, though nothing is due', () => {
    expect(kindOf({ nextKeyId: 'new', nowMs: 0 })).toBe('enrol');
    expect(kindOf({ enrolled: [OLD, FOREIGN], nowMs: 0 })).toBe('drop');
  });

  it('leaves it alone when the cluster counts none of our keys', () => {
    expect(kindOf({ enrolled: [FOREIGN] })).toBe('lost');
    expect(kindOf({ enrolled: [], nextKeyId: 'new' })).toBe('lost');
  });

  it('is due between four fifths of the period and the whole, by the key: a fleet that enrolled at once is spread', () => {
    const due = Array.from({ length: 500 }, (_, number) => {
      const keyId = `key-${number}`;
      const enrolled = [{ keyId, addedAtMs: 0 }];
      expect(kindOf({ enrolled, currentKeyId: keyId, nowMs: 0.8 * PERIOD - 1 })).toBe('wait');
      expect(kindOf({ enrolled, currentKeyId: keyId, nowMs: PERIOD })).toBe('make');
      const day = Array.from({ length: 61 }, (_none, half) => 24 * DAY + half * 0.1 * DAY);
      return day.findIndex((nowMs) => kindOf({ enrolled, currentKeyId: keyId, nowMs }) === 'make');
    });
    // Some 8 in each tenth of a day.
    const most = Math.max(...Array.from({ length: 61 }, (_, tenth) => due.filter((each) => each === tenth).length));
    expect(most).toBeLessThan(25);
  });

  it('waits a day at most, so that a clock that is set counts', () => {
    expect(stepOf({ nowMs: 0 })).toEqual({ kind: 'wait', forMs: DAY });
    expect(stepOf({ nowMs: -365 * DAY })).toEqual({ kind: 'wait', forMs: DAY });
  });
});

describe('the first look of an agent', () => {
  it('comes within the hour, and within a tenth of a short period', () => {
    expect(firstLookMs(PERIOD, 0)).toBe(0);
    expect(firstLookMs(PERIOD, 0.5)).toBe(1_800_000);
    expect(firstLookMs(10_000, 0.5)).toBe(500);
  });
});

describe('a key that was refused', () => {
  it('is worth another try after a minute', () => {
    expect(isWorthATry(undefined, 5)).toBe(true);
    expect(isWorthATry(0, 59_999)).toBe(false);
    expect(isWorthATry(0, 60_000)).toBe(true);
  });
});
