import { describe, expect, it } from 'vitest';
import { ITEM_BYTES_MAX, type Item, itemBytes } from '../item-store.ts';
import { checkKey, itemAfter } from './written-item.ts';

const KEY = { table: 'objects', pk: 'p', sk: 's' } as const;
const put = (item: Item) => itemAfter({ kind: 'put', key: KEY, item }, undefined);
/** An item with its keys in `bytes` bytes. */
const textOf = (bytes: number) => 'x'.repeat(bytes - itemBytes({ pk: 'p', sk: 's', text: '' }));

describe('the item after a write', () => {
  it('may have 400 KB with its keys, and not one byte more', () => {
    expect(itemBytes(put({ text: textOf(ITEM_BYTES_MAX) })!)).toBe(ITEM_BYTES_MAX);
    expect(() => put({ text: textOf(ITEM_BYTES_MAX + 1) })).toThrowError(
      expect.objectContaining({ code: 'too-large', retryable: false }),
    );
  });

  it.each([
    [1e-130, true],
    [9.9e-131, false],
    [-1e-130, true],
    [9.9e125, true],
    [1e126, false],
    [-1e126, false],
    [0, true],
  ])('holds the number %d: %s', (value, isHeld) => {
    if (isHeld) expect(put({ value })).toMatchObject({ value });
    else expect(() => put({ value })).toThrowError(expect.objectContaining({ code: 'rejected', retryable: false }));
  });

  it('does not change with what the writer or a reader does to it', () => {
    const list = [{ name: 'one' }];
    const item = put({ list });
    list[0]!.name = 'two';
    list.push({ name: 'three' });
    expect(item).toEqual({ pk: 'p', sk: 's', list: [{ name: 'one' }] });
    expect(Object.isFrozen(item)).toBe(true);
    expect(Object.isFrozen(item!['list'])).toBe(true);
    expect(Object.isFrozen((item!['list'] as Item[])[0])).toBe(true);
  });
});

describe('a key', () => {
  it.each([
    ['p'.repeat(2_048), 's'.repeat(1_024), undefined],
    ['p'.repeat(2_049), 's', 'rejected'],
    ['p', 's'.repeat(1_025), 'rejected'],
    ['é'.repeat(1_025), 's', 'rejected'],
    ['', 's', 'rejected'],
    ['p', '', 'rejected'],
  ])('of %#: %s, %s', (pk, sk, code) => {
    const check = () => checkKey({ pk, sk });
    if (code === undefined) expect(check).not.toThrow();
    else expect(check).toThrowError(expect.objectContaining({ code, retryable: false }));
  });
});
