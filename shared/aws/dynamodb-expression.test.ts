import { describe, expect, it } from 'vitest';
import type { Condition } from '../store/item-store.ts';
import { conditionExpression, placeholders, updateExpression } from './dynamodb-expression.ts';

const ORDER = ['<', '<=', '>', '>='] as const;

describe('a condition', () => {
  it.each(['=', '<>'] as const)('compares a boolean by %s', (op) => {
    const holders = placeholders();
    expect(conditionExpression({ kind: 'compare', attribute: 'a', op, value: true }, holders)).toBe(`#0 ${op} :0`);
    expect(holders).toMatchObject({ names: { '#0': 'a' }, values: { ':0': { BOOL: true } } });
  });

  it.each(ORDER)('compares numbers and strings by %s, and rejects booleans as the service does', (op) => {
    for (const value of [1, 'text']) {
      expect(conditionExpression({ kind: 'compare', attribute: 'a', op, value }, placeholders())).toBe(`#0 ${op} :0`);
    }
    const condition: Condition = { kind: 'compare', attribute: 'a', op, value: false };
    expect(() => conditionExpression(condition, placeholders())).toThrow(expect.objectContaining({ code: 'rejected' }));
  });

  it('of several parts is in brackets, of one part without', () => {
    const has: Condition = { kind: 'has', attribute: 'a' };
    const lacks: Condition = { kind: 'lacks', attribute: 'b' };
    const of = (condition: Condition) => conditionExpression(condition, placeholders());
    expect(of({ kind: 'all', of: [has, lacks] })).toBe('(attribute_exists(#0) AND attribute_not_exists(#1))');
    expect(of({ kind: 'any', of: [has, lacks] })).toBe('(attribute_exists(#0) OR attribute_not_exists(#1))');
    expect(of({ kind: 'any', of: [{ kind: 'all', of: [lacks] }] })).toBe('attribute_not_exists(#0)');
  });
});

describe('an update', () => {
  const key = { table: 'objects', pk: 'p', sk: 's' } as const;

  it('sets, sets if absent, adds and removes, with one placeholder per attribute', () => {
    const holders = placeholders();
    const write = { set: { a: 1, b: 'x' }, setIfAbsent: { c: 2 }, add: { d: 3 }, remove: ['e', 'a'] };
    expect(updateExpression({ kind: 'update', key, ...write }, holders)).toBe(
      'SET #0 = :0, #1 = :1, #2 = if_not_exists(#2, :2) ADD #3 :3 REMOVE #4, #0',
    );
    expect(holders.names).toEqual({ '#0': 'a', '#1': 'b', '#2': 'c', '#3': 'd', '#4': 'e' });
  });

  it.each([
    [{}, ''],
    [{ add: { a: 1 } }, 'ADD #0 :0'],
    [{ remove: ['a'] }, 'REMOVE #0'],
    [{ setIfAbsent: { a: 1 } }, 'SET #0 = if_not_exists(#0, :0)'],
  ])('of %j has no empty clause', (write, expected) => {
    expect(updateExpression({ kind: 'update', key, ...write }, placeholders())).toBe(expected);
  });
});
