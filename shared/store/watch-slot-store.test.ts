import { expect, it } from 'vitest';
import { memoryItemStore } from '../adapters/memory/item-store.ts';
import { StoreFault } from '../ports/item-store.ts';
import { type SlotRequest, watchSlots } from './watch-slot-store.ts';

const request = (holder: string, more: Partial<SlotRequest> = {}): SlotRequest => ({
  holder,
  slotsMax: 2,
  nowMs: 1_000,
  untilMs: 61_000,
  fraction: () => 0,
  ...more,
});

it('refuses a watch while every slot is held, and accepts one after a release', async () => {
  const slots = watchSlots(memoryItemStore());
  const first = await slots.acquire(request('a'));
  expect(await slots.acquire(request('b'))).toBeDefined();
  expect(await slots.acquire(request('c'))).toBeUndefined();
  await first?.release();
  expect(await slots.acquire(request('c'))).toBeDefined();
});

it('frees the slot of an execution that was killed when its watch would have ended', async () => {
  const slots = watchSlots(memoryItemStore());
  await slots.acquire(request('a', { slotsMax: 1 }));
  expect(await slots.acquire(request('b', { slotsMax: 1, nowMs: 60_999 }))).toBeUndefined();
  expect(await slots.acquire(request('b', { slotsMax: 1, nowMs: 61_000, untilMs: 90_000 }))).toBeDefined();
});

it('never releases a slot that belongs to another watch by now', async () => {
  const slots = watchSlots(memoryItemStore());
  const late = await slots.acquire(request('a', { slotsMax: 1 }));
  await slots.acquire(request('b', { slotsMax: 1, nowMs: 61_000, untilMs: 90_000 }));
  await late?.release();
  expect(await slots.acquire(request('c', { slotsMax: 1, nowMs: 62_000 }))).toBeUndefined();
});

it('assigns a slot of its own to each of several watches that start at once', async () => {
  const slots = watchSlots(memoryItemStore());
  const acquired = await Promise.all(['a', 'b', 'c'].map((holder) => slots.acquire(request(holder))));
  expect(acquired.filter((slot) => slot !== undefined)).toHaveLength(2);
});

it('leaves a slot to its expiry when the store fails at the release', async () => {
  const items = memoryItemStore();
  let isDown = false;
  const slots = watchSlots({
    query: items.query,
    write: (write) => {
      if (isDown) throw new StoreFault('unreachable', 'down', { retryable: true });
      return items.write(write);
    },
  });
  const slot = await slots.acquire(request('a'));
  isDown = true;
  await expect(slot?.release()).resolves.toBeUndefined();
});
