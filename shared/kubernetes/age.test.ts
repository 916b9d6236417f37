import { describe, expect, it } from 'vitest';
import { ageSince, formatAge } from './age.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('ages', () => {
  it.each([
    [-5 * SECOND, '<invalid>'],
    [-1 * SECOND, '0s'],
    [0, '0s'],
    [119 * SECOND, '119s'],
    [2 * MINUTE, '2m'],
    [9 * MINUTE + 59 * SECOND, '9m59s'],
    [10 * MINUTE, '10m'],
    [179 * MINUTE, '179m'],
    [3 * HOUR, '3h'],
    [7 * HOUR + 59 * MINUTE, '7h59m'],
    [8 * HOUR, '8h'],
    [47 * HOUR, '47h'],
    [48 * HOUR, '2d'],
    [7 * DAY + 23 * HOUR, '7d23h'],
    [8 * DAY, '8d'],
    [729 * DAY, '729d'],
    [2 * 365 * DAY, '2y'],
    [(2 * 365 + 70) * DAY, '2y70d'],
    [9 * 365 * DAY + 40 * DAY, '9y'],
  ])('shows %d ms as %s', (durationMs, text) => {
    expect(formatAge(durationMs)).toBe(text);
  });

  it('counts from a timestamp', () => {
    expect(ageSince('2001-02-03T04:05:06Z', Date.UTC(2001, 1, 3, 4, 5, 11))).toBe('5s');
    expect(ageSince(undefined, 0)).toBe('<unknown>');
  });
});
