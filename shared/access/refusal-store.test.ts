import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { refusalsAdded, refusalsOf } from './refusal-store.ts';

const MINUTE_MS = Date.UTC(2026, 0, 1, 12, 30);
const GREEDY = { kind: 'node', username: 'system:node:greedy', over: 'time' };

describe('stored refusals', () => {
  it('of several environments are added up by minute and identity', async () => {
    const items = memoryItemStore();
    const [one, other] = [refusalsAdded(items), refusalsAdded(items)];
    await one({ ...GREEDY, count: 1 }, MINUTE_MS);
    await other({ ...GREEDY, count: 40 }, MINUTE_MS + 59_999);
    await one({ ...GREEDY, username: 'vera', kind: 'person', count: 2 }, MINUTE_MS + 1);
    await one({ ...GREEDY, count: 600 }, MINUTE_MS + 60_000);
    const found = await refusalsOf(items, MINUTE_MS);
    expect(found.toSorted((first, second) => second.count - first.count)).toEqual([
      { ...GREEDY, count: 41 },
      { kind: 'person', username: 'vera', over: 'time', count: 2 },
    ]);
    expect(await refusalsOf(items, MINUTE_MS + 60_000)).toEqual([{ ...GREEDY, count: 600 }]);
  });

  it('are kept for an hour', async () => {
    const items = memoryItemStore();
    await refusalsAdded(items)({ ...GREEDY, count: 1 }, MINUTE_MS + 59_999);
    expect(items.items('control')).toMatchObject([{ pk: 'refusals', ttl: MINUTE_MS / 1_000 + 3_600 }]);
  });

  it('of a hundred identities of a minute are read, and not those of a minute with the same first digits', async () => {
    const items = memoryItemStore();
    const add = refusalsAdded(items);
    for (let index = 0; index < 101; index += 1) await add({ ...GREEDY, username: `u${index}`, count: 1 }, 60_000);
    await add({ ...GREEDY, count: 1 }, 600_000);
    expect(await refusalsOf(items, 60_000)).toHaveLength(100);
    expect(await refusalsOf(items, 600_000)).toEqual([{ ...GREEDY, count: 1 }]);
    expect(await refusalsOf(items, 0)).toEqual([]);
  });
});
