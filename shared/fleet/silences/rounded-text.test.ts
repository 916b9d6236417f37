import { expect, it } from 'vitest';
import { roundedText } from './advice-text.ts';

it.each([
  [0, '0'],
  [0.0123, '0.012'],
  [99.4, '99'],
  [100, '100'],
  [1_234.5, '1235'],
  [Number.POSITIVE_INFINITY, '-'],
  [Number.NaN, '-'],
])('%d is written %s', (value, text) => {
  expect(roundedText(value)).toBe(text);
});
