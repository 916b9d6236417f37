import { describe, expect, it } from 'vitest';
import type { AttributeValue, Item } from '../item-store.ts';
import { changeOf } from './store-change.ts';

const KEY = { table: 'objects', pk: 'p', sk: 's' } as const;
const itemWith = (value: AttributeValue): Item => ({ pk: 'p', sk: 's', value });
const change = (before: Item | undefined, after: Item | undefined) => changeOf(KEY, before, after, 'write');

describe('a change of an item', () => {
  it('has a type by what was there before and is there after', () => {
    const item = itemWith(1);
    expect(change(undefined, item)).toEqual({ key: KEY, type: 'INSERT', newImage: item, cause: 'write' });
    expect(change(item, itemWith(2))).toMatchObject({ type: 'MODIFY', oldImage: item, newImage: itemWith(2) });
    expect(changeOf(KEY, item, undefined, 'expired')).toEqual({
      key: KEY,
      type: 'REMOVE',
      oldImage: item,
      cause: 'expired',
    });
    expect(change(undefined, undefined)).toBeUndefined();
  });

  it.each<[string, AttributeValue]>([
    ['a text', 'a'],
    ['a number', 0],
    ['a list', ['a', { b: 1 }]],
    ['a map', { a: { b: [true] } }],
    ['bytes', Uint8Array.of(1, 2)],
    ['no bytes', new Uint8Array()],
  ])('is none if %s stays the same', (_, value) => {
    expect(change(itemWith(value), itemWith(structuredClone(value)))).toBeUndefined();
  });

  // Each pair has something in common: the same members, positions or text.
  it.each<[string, AttributeValue, AttributeValue]>([
    ['a list that becomes a map', ['a'], { 0: 'a' }],
    ['bytes that become a map', Uint8Array.of(1), { 0: 1 }],
    ['a map that becomes bytes', { 0: 1 }, Uint8Array.of(1)],
    ['bytes that become a list', Uint8Array.of(1), [1]],
    ['bytes with one more', Uint8Array.of(1), Uint8Array.of(1, 2)],
    ['bytes with one less', Uint8Array.of(1, 2), Uint8Array.of(1)],
    ['another last byte', Uint8Array.of(1, 2), Uint8Array.of(1, 3)],
    ['a text that becomes a list', 'a', ['a']],
    ['a list that becomes a text', ['a'], 'a'],
    ['a number that becomes a text', 1, '1'],
    ['false that becomes an empty map', false, {}],
    ['a map with one more member', { a: 1 }, { a: 1, b: 2 }],
    ['a map with one less member', { a: 1, b: 2 }, { a: 1 }],
    ['a map with another member', { a: 1 }, { b: 1 }],
    ['one other value of two', [1, 2], [1, 3]],
  ])('is %s', (_, before, after) => {
    expect(change(itemWith(before), itemWith(after))?.type).toBe('MODIFY');
  });

  it('is an attribute that was not there, and one that no longer exists', () => {
    const bare: Item = { pk: 'p', sk: 's' };
    expect(change(bare, itemWith({}))?.type).toBe('MODIFY');
    expect(change(itemWith({}), bare)?.type).toBe('MODIFY');
    expect(change(bare, itemWith(Uint8Array.of(1)))?.type).toBe('MODIFY');
  });
});
