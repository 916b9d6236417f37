import { describe, expect, it } from 'vitest';
import type { TransactWrite } from './item-store.ts';
import { checkSegment, checkTransaction, keyText } from './request-limits.ts';

const rejected = (message: string) => expect.objectContaining({ code: 'rejected', retryable: false, message });

describe('a segment of a scan', () => {
  const check = (segment: number, segments: number) =>
    checkSegment({ table: 'health', consistent: true, segment, segments });

  it.each([
    [0, 1],
    [0, 32],
    [31, 32],
  ])('may be %i of %i', (segment, segments) => {
    expect(() => check(segment, segments)).not.toThrow();
  });

  it.each([
    [0, 33],
    [-1, 4],
    [4, 4],
    [0, 0],
  ])('cannot be %i of %i', (segment, segments) => {
    expect(() => check(segment, segments)).toThrow(rejected('a scan accepts segment 0 to 31 of 1 to 32'));
  });
});

describe('a transaction', () => {
  const deletions = (count: number): TransactWrite[] =>
    Array.from({ length: count }, (_, n) => ({ kind: 'delete', key: { table: 'objects', pk: 'p', sk: `${n}` } }));

  it('has 1 to 100 writes, each on another item', () => {
    for (const count of [1, 100]) expect(() => checkTransaction(deletions(count))).not.toThrow();
    const refusal = rejected('a transaction accepts 1 to 100 writes on distinct items');
    const twice = [...deletions(2), ...deletions(1)];
    for (const writes of [[], deletions(101), twice]) expect(() => checkTransaction(writes)).toThrow(refusal);
  });
});

it('keys with the same letters in another place have different texts', () => {
  const keys = [
    ['objects', 'a b', 'c'],
    ['objects', 'a', 'b c'],
    ['objects', 'a ', 'b c'],
    ['control', 'a', 'b c'],
  ] as const;
  expect(new Set(keys.map(([table, pk, sk]) => keyText({ table, pk, sk }))).size).toBe(4);
});
