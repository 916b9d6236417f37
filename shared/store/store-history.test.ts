import { expect, it } from 'vitest';
import { memoryItemStore } from './memory/item-store.ts';
import { readHistory, writeHistory } from './store-history.ts';

it('the history of a store has no name until a backup is restored, then that of the last one', async () => {
  const items = memoryItemStore();
  const reads: boolean[] = [];
  const watched = {
    ...items,
    get: (...[key, options]: Parameters<typeof items.get>) => {
      reads.push(options.consistent);
      return items.get(key, options);
    },
  };
  expect(await readHistory(watched)).toBe('');
  await writeHistory(items, 'first');
  await writeHistory(items, 'second');
  expect(await readHistory(watched)).toBe('second');
  expect(reads).toEqual([true, true]);
  expect(items.items('control')).toEqual([{ pk: 'history', sk: '-', i: 'second' }]);
});
