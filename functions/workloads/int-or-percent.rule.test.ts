import { expect, it } from 'vitest';
import { scaledValue } from './int-or-percent.rule.ts';

it.each([
  [3, 10, 'up', 3],
  ['25%', 10, 'up', 3],
  ['25%', 10, 'down', 2],
  ['100%', 7, 'down', 7],
  ['0%', 7, 'up', 0],
  ['7%', 100, 'up', 7],
  ['x%', 10, 'up', undefined],
  ['25', 10, 'up', undefined],
  ['25%5', 10, 'up', undefined],
  ['-5%', 10, 'up', undefined],
] as const)('%j of %i, rounded %s, is %s', (value, total, round, expected) => {
  expect(scaledValue(value, total, round)).toBe(expected);
});
