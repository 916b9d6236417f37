import { describe, expect, it } from 'vitest';
import { canonicalMicroTime, canonicalTime, formatMicroTime, formatTime, parseTimeMs } from './time.ts';

describe('times', () => {
  const ms = Date.UTC(2001, 1, 3, 4, 5, 6, 789);

  it('writes seconds and microseconds', () => {
    expect(formatTime(ms)).toBe('2001-02-03T04:05:06Z');
    expect(formatMicroTime(ms)).toBe('2001-02-03T04:05:06.789000Z');
  });

  it.each([
    '2001-02-03T04:05:06.789Z',
    '2001-02-03T04:05:06.789999Z',
    '2001-02-03t04:05:06.789z',
    '2001-02-03T06:05:06.789+02:00',
    '2001-02-02T23:35:06.789-04:30',
  ])('reads %s', (text) => {
    expect(parseTimeMs(text)).toBe(ms);
  });

  it.each([
    '',
    'now',
    '2001-02-03',
    '2001-02-31T00:00:00Z',
    '2001-02-03T25:00:00Z',
    '2001-02-03 04:05:06Z',
    '2001-02-03T04:05:06',
  ])('does not read %j', (text) => {
    expect(parseTimeMs(text)).toBeUndefined();
    expect(canonicalTime(text)).toBe(text);
  });

  it('reads years of two digits literally', () => {
    expect(parseTimeMs('0050-01-01T00:00:00Z')).toBe(Date.parse('0050-01-01T00:00:00Z'));
    expect(canonicalTime('0099-12-31T23:59:59Z')).toBe('0099-12-31T23:59:59Z');
  });

  it.each([
    '0000-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '2001-02-03T04:05:06+25:00',
    '2001-02-03T04:05:06+01:60',
  ])('does not read %s, which no four digits of a year or no zone can write', (text) => {
    expect(parseTimeMs(text)).toBeUndefined();
  });

  it.each([
    [1e300, '9999-12-31T23:59:59Z'],
    [Number.POSITIVE_INFINITY, '9999-12-31T23:59:59Z'],
    [Date.UTC(9999, 11, 31, 23, 59, 60), '9999-12-31T23:59:59Z'],
    [-1e300, '0000-01-01T00:00:00Z'],
  ])('writes %d as the nearest time of the calendar', (epochMs, text) => {
    expect(formatTime(epochMs)).toBe(text);
    expect(formatMicroTime(epochMs).slice(0, 19)).toBe(text.slice(0, 19));
    expect(canonicalMicroTime(formatMicroTime(epochMs))).toBe(formatMicroTime(epochMs));
  });

  it('reads nothing from null', () => {
    expect(parseTimeMs(null)).toBeUndefined();
    expect(parseTimeMs(undefined)).toBeUndefined();
  });

  it('keeps microseconds that do not fit into milliseconds', () => {
    expect(canonicalMicroTime('2001-02-03T04:05:06.789012Z')).toBe('2001-02-03T04:05:06.789012Z');
    expect(canonicalMicroTime('2001-02-03T04:05:06.7Z')).toBe('2001-02-03T04:05:06.700000Z');
    expect(canonicalTime('2001-02-03T04:05:06.789012+01:00')).toBe('2001-02-03T03:05:06Z');
  });
});
