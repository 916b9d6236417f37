import { expect, it } from 'vitest';
import { memoryItemStore } from '../adapters/memory/item-store.ts';
import type { ItemStore } from '../ports/item-store.ts';
import { changeLog } from './change-log.ts';
import { objectStore } from './object-store.ts';

/** Pages of one shard's log in one read. */
const LOG_PAGES_MAX = 64;

it('a read of the change log ends, though pages without an entry never do', async () => {
  const items = memoryItemStore();
  let pages = 0;
  const endless: ItemStore = {
    ...items,
    async query(request) {
      pages += 1;
      if (pages > 10 * LOG_PAGES_MAX) throw new Error('the read does not stop');
      return { items: [], next: request.through ?? '' };
    },
  };
  const options = { clock: { nowMs: () => Date.UTC(2026, 0, 1) }, shardsOf: () => 1 };
  await objectStore({ ...options, items }).commit({
    writes: [
      { kind: 'create', ref: { resource: 'things', namespace: '', name: 'a' }, object: { metadata: { name: 'a' } } },
    ],
  });
  const { readChanges } = changeLog({ ...options, items: endless });
  const after = (Date.UTC(2026, 0, 1) - 60_000) * 1_000;
  await expect(readChanges({ resource: 'things', after, limit: 10, eager: true })).rejects.toMatchObject({
    name: 'StoreFault',
    code: 'too-large',
  });
  expect(pages).toBe(LOG_PAGES_MAX);
});
