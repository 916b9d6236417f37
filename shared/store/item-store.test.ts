import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkSegment,
  checkTransaction,
  compareKeys,
  controlPages,
  type ItemStore,
  itemBytes,
  keyText,
  type QueryRequest,
  type TransactWrite,
  valueBytes,
} from './item-store.ts';

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

/** A partition of so many pages. */
function partition(pagesTotal: number) {
  const asked: QueryRequest[] = [];
  const query: ItemStore['query'] = async (request) => {
    asked.push(request);
    const page = asked.length;
    return { items: [{ sk: page }], ...(page < pagesTotal && { next: `k${page}` }) };
  };
  return { asked, read: () => controlPages({ query }, 'queue', { consistent: true, tooMany: 'too many rows' }) };
}

it('all pages of a partition are read, each after the one before', async () => {
  const { asked, read } = partition(3);
  const found: unknown[] = [];
  for await (const items of read()) found.push(...items);
  expect(found).toEqual([{ sk: 1 }, { sk: 2 }, { sk: 3 }]);
  const request = { table: 'control', pk: 'queue', consistent: true };
  expect(asked).toEqual([request, { ...request, after: 'k1' }, { ...request, after: 'k2' }]);
});

it('no page is read that the caller does not ask for', async () => {
  const { asked, read } = partition(3);
  for await (const _ of read()) break;
  expect(asked).toHaveLength(1);
});

it.each([
  [64, undefined],
  [65, { code: 'too-large', message: 'too many rows', retryable: false }],
])('%i pages are read, or refused with %j', async (pagesTotal, fault) => {
  const { asked, read } = partition(pagesTotal);
  const readAll = async (): Promise<void> => {
    for await (const items of read()) expect(items).toHaveLength(1);
  };
  if (fault === undefined) await readAll();
  else await expect(readAll()).rejects.toMatchObject(fault);
  expect(asked).toHaveLength(64);
});

describe('sizes', () => {
  it.each([
    ['an empty string', '', 0],
    ['zero', 0, 2],
    ['a resourceVersion', 1_795_197_026_123_456, 9],
    ['a negative fraction', -12.5, 4],
    ['true', true, 1],
    ['a number with a zero inside', 101, 3],
    ['an empty list', [], 3],
    ['a list', ['abc', [true]], 3 + (1 + 3) + (1 + 3 + 1 + 1)],
    ['a map', { ab: 'cde' }, 3 + 1 + 2 + 3],
  ])('weighs %s', (_, value, bytes) => {
    expect(valueBytes(value)).toBe(bytes);
  });

  it('adds names and values', () => {
    expect(itemBytes({ pk: 's01', sk: 'edge-1', v: 17 })).toBe(2 + 3 + 2 + 6 + 1 + 2);
  });
});

describe('the order of keys', () => {
  it('is that of UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
        expect(Math.sign(compareKeys(one, other))).toBe(Buffer.compare(Buffer.from(one), Buffer.from(other)));
      }),
    );
  });
});
