import { expect, it } from 'vitest';
import { ItemCache } from './item-cache.ts';

const item = (sk: string) => ({ pk: 'p', sk });

it('an item that is read stays, one that is not read makes room, and the limit holds', () => {
  const cache = new ItemCache(10 * 400);
  cache.set('read', item('read'), 100);
  cache.set('forgotten', item('forgotten'), 100);
  for (let index = 0; index < 100; index += 1) {
    expect(cache.get('read')).toEqual(item('read'));
    cache.set(String(index), item(String(index)), 100);
    expect(cache.bytes).toBeLessThanOrEqual(4_000);
  }
  expect(cache.get('forgotten')).toBeUndefined();
  expect(cache.entries()).toHaveLength(10);
});

it('all items in use do not exceed the limit', () => {
  const cache = new ItemCache(2 * 400);
  for (const name of ['a', 'b', 'c', 'd']) {
    cache.set(name, item(name), 100);
    cache.get(name);
  }
  expect(cache.entries()).toHaveLength(2);
  expect(cache.bytes).toBe(800);
});
