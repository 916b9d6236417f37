import { expect, it } from 'vitest';
import { StoreFault } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type SlotRequest, type WatchSlot, type WatchSlots, watchSlots } from './watch-slot-store.ts';

/** Each holder is a user of its own, unless the test states another. */
const request = (holder: string, more: Partial<SlotRequest> = {}): SlotRequest => ({
  holder,
  user: holder,
  level: 'person',
  slotsMax: 2,
  nowMs: 1_000,
  untilMs: 61_000,
  fraction: () => 0,
  ...more,
});

async function acquired(slots: WatchSlots, wanted: SlotRequest): Promise<WatchSlot | undefined> {
  const outcome = await slots.acquire(wanted);
  return outcome.kind === 'acquired' ? outcome.slot : undefined;
}

it('refuses a watch while every slot is held, and accepts one after a release', async () => {
  const slots = watchSlots(memoryItemStore());
  const first = await acquired(slots, request('a'));
  expect(await acquired(slots, request('b'))).toBeDefined();
  expect(await slots.acquire(request('c'))).toEqual({ kind: 'levelAtLimit', slots: 2 });
  await first?.release();
  expect(await acquired(slots, request('c'))).toBeDefined();
});

it('frees the slot of an execution that was killed when its watch would have ended', async () => {
  const slots = watchSlots(memoryItemStore());
  await slots.acquire(request('a', { slotsMax: 1 }));
  expect(await acquired(slots, request('b', { slotsMax: 1, nowMs: 60_999 }))).toBeUndefined();
  expect(await acquired(slots, request('b', { slotsMax: 1, nowMs: 61_000, untilMs: 90_000 }))).toBeDefined();
});

it('never releases a slot that belongs to another watch by now', async () => {
  const slots = watchSlots(memoryItemStore());
  const late = await acquired(slots, request('a', { slotsMax: 1 }));
  await slots.acquire(request('b', { slotsMax: 1, nowMs: 61_000, untilMs: 90_000 }));
  await late?.release();
  expect(await acquired(slots, request('c', { slotsMax: 1, nowMs: 62_000 }))).toBeUndefined();
});

it('assigns a slot of its own to each of several watches that start at once', async () => {
  const slots = watchSlots(memoryItemStore());
  const outcomes = await Promise.all(['a', 'b', 'c'].map((holder) => acquired(slots, request(holder))));
  expect(outcomes.filter((slot) => slot !== undefined)).toHaveLength(2);
});

it.each([
  ['machine', 5, 10],
  ['person', 0, 20],
] as const)('one %s that starts 60 watches at once stays within its share', async (level, before, most) => {
  const items = memoryItemStore();
  const slots = watchSlots(items);
  let state = 7;
  const fraction = () => {
    state = (state * 16_807) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const claim = (user: string) => ({ user, level, slotsMax: 40, fraction }) as const;
  const start = (user: string, count: number, round: string) =>
    Promise.all(
      Array.from({ length: count }, (_, index) => acquired(slots, request(`${user}-${round}-${index}`, claim(user)))),
    );
  await start('other', before, 'before');
  await start('one', before, 'before');
  for (let round = 0; round < 5; round += 1) await start('one', 60, String(round));
  const held = items.items('control').filter(({ user }) => user === 'one').length;
  expect(held).toBeGreaterThan(0);
  expect(held).toBeLessThanOrEqual(most);
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
  const slot = await acquired(slots, request('a'));
  isDown = true;
  await expect(slot?.release()).resolves.toBeUndefined();
});
