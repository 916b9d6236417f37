import { describe, expect, it } from 'vitest';
import { itemsInOrder, type Partitions, positionAfter, positionOf, replaceItem } from './partitions.ts';

const item = (pk: string, sk: string) => ({ pk, sk });
function partitionsOf(...keys: readonly (readonly [string, string])[]): Partitions {
  const partitions: Partitions = new Map();
  for (const [pk, sk] of keys) replaceItem(partitions, pk, sk, item(pk, sk));
  return partitions;
}

describe('items by partition', () => {
  it('are in order of their keys, whatever the order of the writes', () => {
    const partitions = partitionsOf(['b', '2'], ['a', '3'], ['a', '1'], ['a', '2'], ['b', '1']);
    expect(itemsInOrder(partitions).map(({ pk, sk }) => `${pk}${sk}`)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);
  });

  it('are replaced in their place', () => {
    const partitions = partitionsOf(['a', '1'], ['a', '2']);
    replaceItem(partitions, 'a', '1', { ...item('a', '1'), text: 'new' });
    expect(itemsInOrder(partitions)).toEqual([{ pk: 'a', sk: '1', text: 'new' }, item('a', '2')]);
  });

  it('leave nothing behind when the last one is deleted', () => {
    const partitions = partitionsOf(['a', '1'], ['a', '2'], ['b', '1']);
    for (const sk of ['1', '1', '9']) replaceItem(partitions, 'a', sk, undefined);
    expect(itemsInOrder(partitions)).toEqual([item('a', '2'), item('b', '1')]);
    replaceItem(partitions, 'a', '2', undefined);
    replaceItem(partitions, 'c', '1', undefined);
    expect([...partitions.keys()]).toEqual(['b']);
  });
});

describe('a position in sort keys', () => {
  const ORDER = ['b', 'd', 'f'];
  it.each([
    ['a', 0, 0],
    ['b', 0, 1],
    ['c', 1, 1],
    ['d', 1, 2],
    ['e', 2, 2],
    ['f', 2, 3],
    ['g', 3, 3],
  ])('of %s is %d, and the first one after it is at %d', (sk, of, after) => {
    expect(positionOf(ORDER, sk)).toBe(of);
    expect(positionAfter(ORDER, sk)).toBe(after);
  });

  it('is 0 without keys, and without a key to come after', () => {
    expect(positionOf([], 'a')).toBe(0);
    expect(positionAfter(ORDER, undefined)).toBe(0);
  });
});
