import { expect, it } from 'vitest';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { readShortages, writeShortages } from './shortage-store.ts';

it('shortages are none at first, and replaced as a whole', async () => {
  const items = memoryItemStore();
  expect(await readShortages(items)).toEqual({});
  await writeShortages(items, { a: 1 });
  await writeShortages(items, { b: 2 });
  expect(await readShortages(items)).toEqual({ b: 2 });
});
