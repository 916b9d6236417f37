import { describe, expect, it } from 'vitest';
import { formatGoDuration, parseGoDuration } from './go-duration.ts';

describe('durations of Go', () => {
  it.each([
    ['0', 0],
    ['10s', 10_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1h0m0.25s', 3_600_250],
    ['-2s', -2_000],
    ['100us', 0.1],
  ])('reads %s', (text, milliseconds) => {
    expect(parseGoDuration(text)).toBeCloseTo(milliseconds, 9);
  });

  it.each(['', '10', 's', '10 s', '1d', '10sec', '1.2.3s', '300000h0m0s9999999h'])('refuses %j', (text) => {
    expect(parseGoDuration(text)).toBeUndefined();
  });

  it.each([
    [0, '0s'],
    [500, '500ms'],
    [1_500, '1.5s'],
    [30_000, '30s'],
    [90_000, '1m30s'],
    [120_000, '2m0s'],
    [3_600_000, '1h0m0s'],
    [0.25, '250µs'],
    [100_000, '1m40s'],
    [-1_000, '-1s'],
  ])('prints %d ms', (milliseconds, text) => {
    expect(formatGoDuration(milliseconds)).toBe(text);
  });
});
