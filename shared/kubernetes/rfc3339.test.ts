import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRfc3339, rfc3339, rfc3339RoundedUp } from './rfc3339.ts';

describe('rfc3339', () => {
  it('writes what Date writes, without the fraction', () => {
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(1600, 0, 1), max: Date.UTC(9999, 11, 31, 23, 59, 59) }), (epochMs) => {
        const whole = Math.floor(epochMs / 1_000) * 1_000;
        expect(rfc3339(epochMs)).toBe(new Date(whole).toISOString().replace('.000Z', 'Z'));
      }),
    );
  });

  it.each([
    ['1970-01-01T00:00:00Z', 0],
    ['1999-12-31T23:59:59Z', 946_684_799_000],
    ['2000-02-29T00:00:00Z', 951_782_400_000],
    ['2100-03-01T00:00:00Z', 4_107_542_400_000],
  ])('knows the edge %s', (text, epochMs) => {
    expect(rfc3339(epochMs)).toBe(text);
    expect(parseRfc3339(text)).toBe(epochMs);
  });

  it('rounds up to the next second, and leaves a whole one alone', () => {
    expect(rfc3339RoundedUp(1)).toBe('1970-01-01T00:00:01Z');
    expect(rfc3339RoundedUp(1_000)).toBe('1970-01-01T00:00:01Z');
  });
});

describe('parseRfc3339', () => {
  it('reads back what Date writes, to the millisecond', () => {
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(1600, 0, 1), max: Date.UTC(9999, 11, 31) }), (epochMs) => {
        expect(parseRfc3339(new Date(epochMs).toISOString())).toBe(epochMs);
      }),
    );
  });

  it('reads offsets and microseconds', () => {
    expect(parseRfc3339('1970-01-01T02:00:00.123456+02:00')).toBe(123);
    expect(parseRfc3339('1969-12-31T19:00:00-05:00')).toBe(0);
  });

  it.each(['', 'now', '2026-02-29T00:00:00Z', '2026-13-01T00:00:00Z', '2026-01-01T24:00:00Z', '2026-01-01T00:00:00'])(
    'refuses %j',
    (text) => {
      expect(parseRfc3339(text)).toBeUndefined();
    },
  );
});
