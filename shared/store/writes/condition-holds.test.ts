import { expect, it } from 'vitest';
import { conditionHolds } from './condition-holds.ts';

const OPERATORS = ['<', '<=', '=', '<>', '>=', '>'] as const;
const bytes = (...values: number[]) => Uint8Array.from(values);

it.each([
  [5, 9, ['<', '<=', '<>']],
  [9, 9, ['<=', '=', '>=']],
  [10, 9, ['<>', '>=', '>']],
  ['10', '9', ['<', '<=', '<>']],
  ['9', '9', ['<=', '=', '>=']],
  ['a', '9', ['<>', '>=', '>']],
  // Another type has no order, and is not equal.
  ['5', 9, ['<>']],
  ['9', 9, ['<>']],
  [5, '9', ['<>']],
  [true, 1, ['<>']],
  [undefined, 9, ['<>']],
  [undefined, '', ['<>']],
])('the value %j meets these comparisons with %j: %j', (value, operand, expected) => {
  const item = { pk: 'p', sk: 's', ...(value !== undefined && { n: value }) };
  const met = OPERATORS.filter((op) => conditionHolds({ kind: 'compare', attribute: 'n', op, value: operand }, item));
  expect(met).toEqual(expected);
});

it.each([
  [true, true, true],
  [true, false, false],
  [bytes(1, 2), bytes(1, 2), true],
  [bytes(1, 2), bytes(1), false],
  [bytes(1), bytes(1, 2), false],
  [bytes(1, 2), bytes(1, 3), false],
  [[1, 2], bytes(1, 2), false],
])('%j equals %j: %s, and neither has an order', (value, operand, expected) => {
  const item = { pk: 'p', sk: 's', n: value };
  const holds = (op: (typeof OPERATORS)[number]) =>
    conditionHolds({ kind: 'compare', attribute: 'n', op, value: operand }, item);
  expect([holds('='), holds('<>')]).toEqual([expected, !expected]);
  for (const op of ['<', '<=', '>=', '>'] as const) {
    expect(() => holds(op)).toThrowError(expect.objectContaining({ code: 'rejected', retryable: false }));
  }
});
