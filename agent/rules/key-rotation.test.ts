import { describe, expect, it } from 'vitest';
import {
  firstLookMs,
  isWorthATry,
  keyAfterRefusal,
  nextRotationStep,
  type RefusalGround,
  type RotationGround,
} from './key-rotation.ts';

const DAY = 86_400_000;
const PERIOD = 30 * DAY;
const [OLD, NEW, FOREIGN] = ['old', 'new', 'foreign'].map((keyId) => ({ keyId, addedAtMs: 0 })) as [Key, Key, Key];
type Key = RotationGround['enrolled'][number];

const stepOf = (ground: Partial<RotationGround>) =>
  nextRotationStep({ enrolled: [OLD], currentKeyId: 'old', periodMs: PERIOD, nowMs: PERIOD, ...ground });
const kindOf = (ground: Partial<RotationGround>) => stepOf(ground).kind;

describe('the next step of a rotation', () => {
  it('replaces one key by the other, each step derived from the current state alone', () => {
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

  it('adopts the only enrolled key once it is proven, although the disk still has the old one', () => {
    expect(kindOf({ nextKeyId: 'new', enrolled: [NEW] })).toBe('prove');
    expect(kindOf({ nextKeyId: 'new', enrolled: [NEW], provenKeyId: 'new' })).toBe('adopt');
  });

  it('finishes a rotation that has begun, although none is due', () => {
    expect(kindOf({ nextKeyId: 'new', nowMs: 0 })).toBe('enrol');
    expect(kindOf({ enrolled: [OLD, FOREIGN], nowMs: 0 })).toBe('drop');
  });

  it('does nothing when none of our keys is valid in the cluster', () => {
    expect(kindOf({ enrolled: [FOREIGN] })).toBe('lost');
    expect(kindOf({ enrolled: [], nextKeyId: 'new' })).toBe('lost');
  });

  it('is due between four fifths of the period and all of it, by key, so a fleet enrolled at once is spread', () => {
    const due = Array.from({ length: 500 }, (_, number) => {
      const keyId = `key-${number}`;
      const enrolled = [{ keyId, addedAtMs: 0 }];
      expect(kindOf({ enrolled, currentKeyId: keyId, nowMs: 0.8 * PERIOD - 1 })).toBe('wait');
      expect(kindOf({ enrolled, currentKeyId: keyId, nowMs: PERIOD })).toBe('make');
      const day = Array.from({ length: 61 }, (_none, half) => 24 * DAY + half * 0.1 * DAY);
      return day.findIndex((nowMs) => kindOf({ enrolled, currentKeyId: keyId, nowMs }) === 'make');
    });
    // About 8 in each tenth of a day.
    const most = Math.max(...Array.from({ length: 61 }, (_, tenth) => due.filter((each) => each === tenth).length));
    expect(most).toBeLessThan(25);
  });

  it('waits a day at most: a corrected clock then takes effect', () => {
    expect(stepOf({ nowMs: 0 })).toEqual({ kind: 'wait', forMs: DAY });
    expect(stepOf({ nowMs: -365 * DAY })).toEqual({ kind: 'wait', forMs: DAY });
  });
});

describe('the first read of the enrolled keys', () => {
  it('happens within an hour, and within a tenth of a short period', () => {
    expect(firstLookMs(PERIOD, 0)).toBe(0);
    expect(firstLookMs(PERIOD, 0.5)).toBe(1_800_000);
    expect(firstLookMs(10_000, 0.5)).toBe(500);
  });
});

describe('a refused key', () => {
  it('is tried again after a minute', () => {
    expect(isWorthATry(undefined, 5)).toBe(true);
    expect(isWorthATry(0, 59_999)).toBe(false);
    expect(isWorthATry(0, 60_000)).toBe(true);
  });
});

describe('the key that signs after a refusal', () => {
  const choice = (ground: Partial<RefusalGround>) =>
    keyAfterRefusal({
      refusedKeyId: 'old',
      currentKeyId: 'old',
      nextKeyId: 'new',
      acceptedKeyId: undefined,
      refusedAtMs: new Map([['old', 100_000]]),
      nowMs: 100_000,
      ...ground,
    });

  it('is the other one, whichever was refused', () => {
    expect(choice({})).toEqual({ kind: 'otherKey', keyId: 'new' });
    expect(choice({ refusedKeyId: 'new', refusedAtMs: new Map() })).toEqual({ kind: 'otherKey', keyId: 'old' });
  });

  it('is the last accepted one when both were refused within a minute, and the current one if none was', () => {
    const both = new Map([
      ['old', 100_000],
      ['new', 40_001],
    ]);
    expect(choice({ refusedAtMs: both })).toEqual({ kind: 'bothRefused', keyId: 'old' });
    expect(choice({ refusedAtMs: both, acceptedKeyId: 'new' })).toEqual({ kind: 'bothRefused', keyId: 'new' });
    expect(choice({ refusedAtMs: new Map([['new', 40_000]]) }).kind).toBe('otherKey');
  });

  it('stays the same without another key', () => {
    expect(choice({ nextKeyId: undefined })).toEqual({ kind: 'onlyKey' });
  });
});
