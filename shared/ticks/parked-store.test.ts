import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { type ParkedObject, parkedId, parkedStore } from './parked-store.ts';

const object = (resourceVersion: number): ParkedObject => ({
  resource: 'nodes',
  namespace: '',
  name: 'a-0',
  uid: 'u-1',
  resourceVersion,
  text: `state ${resourceVersion}`,
});
const store = () => parkedStore(memoryItemStore());

describe('a parked row', () => {
  it('collects works, keeps its times, and keeps the latest state of the object whatever the order', async () => {
    const parked = store();
    await parked.park(object(5), ['cidrs'], 1_000);
    await parked.park(object(7), ['node'], 2_000);
    await parked.park(object(7), ['node'], 3_000);
    await parked.park(object(3), ['node'], 4_000);
    const [row] = await parked.list();
    expect(row).toMatchObject({ text: 'state 7', firstMs: 1_000, dueMs: 1_000, tries: 0, version: 4 });
    expect(row?.works.toSorted()).toEqual(['cidrs', 'node']);
  });

  it('is not the row of a new object of the same name', async () => {
    const parked = store();
    await parked.park(object(5), ['cidrs'], 1_000);
    await parked.park({ ...object(6), uid: 'u-2' }, ['node'], 1_000);
    expect(await parked.list()).toHaveLength(2);
  });

  it('is not settled when works were parked since it was read', async () => {
    const parked = store();
    await parked.park(object(5), ['cidrs'], 1_000);
    const seen = (await parked.get(parkedId(object(5))))!;
    await parked.park(object(5), ['node'], 2_000);
    expect(await parked.settle(seen, [])).toBe('refused');
    const now = (await parked.get(seen.id))!;
    expect(await parked.settle(now, ['node'])).toBe('written');
    expect((await parked.get(seen.id))?.works).toEqual(['node']);
    expect(await parked.settle(now, [])).toBe('written');
    expect(await parked.list()).toEqual([]);
  });

  it('is not settled by a caller that read an earlier row of the same object', async () => {
    const parked = store();
    await parked.park(object(5), ['node'], 1_000);
    const seen = (await parked.get(parkedId(object(5))))!;
    await parked.settle(seen, []);
    await parked.park(object(6), ['cidrs'], 2_000);
    expect(await parked.settle(seen, [])).toBe('refused');
    expect(await parked.list()).toMatchObject([{ works: ['cidrs'] }]);
  });

  it('has the time at which each work was parked first', async () => {
    const parked = store();
    await parked.park(object(5), ['cidrs'], 1_000);
    await parked.park(object(7), ['node', 'cidrs'], 2_000);
    await parked.park(object(3), ['podGc', 'node'], 3_000);
    expect(await parked.list()).toMatchObject([{ workParkedAtMs: { cidrs: 1_000, node: 2_000, podGc: 3_000 } }]);
  });

  it('is postponed once by two callers that read the same row', async () => {
    const parked = store();
    await parked.park(object(5), ['cidrs'], 1_000);
    const [row] = await parked.list();
    await parked.postpone(row!, 6_000);
    await parked.postpone(row!, 7_000);
    expect(await parked.list()).toMatchObject([{ dueMs: 6_000, tries: 1 }]);
  });
});

it('a park ends after a bounded number of attempts when the row keeps changing', async () => {
  let writes = 0;
  const parked = parkedStore({
    ...memoryItemStore(),
    write: async () => {
      writes += 1;
      return { kind: 'refused' };
    },
  });
  await expect(parked.park(object(5), ['node'], 1_000)).rejects.toMatchObject({ code: 'throttled', retryable: true });
  // Two per attempt.
  expect(writes).toBe(8);
});
