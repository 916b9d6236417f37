import { expect, it } from 'vitest';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { ARRIVAL_KEY, type Fence } from '../../shared/store/move-rows.ts';
import { tableSource } from './table-source.ts';

const FENCE: Fence = { moveId: 'm1', to: '/new', sinceMs: 7, isReady: false };
const READY: Fence = { ...FENCE, isReady: true };
const ADDRESS = { endpoint: 'https://192.0.2.9:6443', certificateAuthority: 'PEM' };

/** Each write is sent twice, as after a lost answer. `beforeRepeat`: what happens between the two. */
function withLostAnswers(items: ItemStore, beforeRepeat: () => Promise<unknown> = async () => {}): ItemStore {
  return {
    ...items,
    async write(write: Parameters<ItemStore['write']>[0], options?: Parameters<ItemStore['write']>[1]) {
      await items.write(write, options);
      await beforeRepeat();
      return items.write(write, options);
    },
  } as ItemStore;
}

it('finds its own success when the answer to each write is lost', async () => {
  const source = tableSource(withLostAnswers(memoryItemStore()), async () => {});
  expect(await source.setFence(FENCE, undefined)).toBe(true);
  expect(await source.setFence(READY, FENCE)).toBe(true);
  expect(await source.setFence({ ...READY, address: ADDRESS }, READY)).toBe(true);
  expect(await source.fence()).toEqual({ ...READY, address: ADDRESS });
  expect(await source.setFence(undefined, READY)).toBe(true);
  expect(await source.fence()).toBeUndefined();
});

it('reports the change of another command, also when an answer is lost', async () => {
  const items = memoryItemStore();
  const plain = tableSource(items, async () => {});
  await plain.setFence({ ...FENCE, moveId: 'm2' }, undefined);
  for (const next of [FENCE, READY, undefined]) expect(await plain.setFence(next, FENCE)).toBe(false);
  expect(await plain.setFence(FENCE, undefined)).toBe(false);
  await plain.setFence(undefined, { ...FENCE, moveId: 'm2' });
  await plain.setFence(FENCE, undefined);
  // --abandon lifts the fence that became ready.
  const losing = withLostAnswers(items, () => plain.setFence(undefined, READY));
  expect(await tableSource(losing, async () => {}).setFence(READY, FENCE)).toBe(false);
  expect(await plain.fence()).toBeUndefined();
});

it.each(['copying', 'ready', 'abandoned', 'open'])(
  'are no cluster before they are open: the move into them is %s',
  async (phase) => {
    const items = memoryItemStore();
    await items.write({ kind: 'put', key: ARRIVAL_KEY, item: { moveId: 'm0', phase } });
    const source = tableSource(items, async () => {});
    if (phase === 'open') expect(await source.setFence(FENCE, undefined)).toBe(true);
    else await expect(source.setFence(FENCE, undefined)).rejects.toThrow('never opened');
  },
);
