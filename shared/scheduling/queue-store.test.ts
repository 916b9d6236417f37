import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { isWanted } from '../ticks/due-rows.ts';
import { advanceOrder, queueStore, type WaitingRow } from './queue-store.ts';

const pass = (id: string, nowMs = 0) => ({ id, nowMs, untilMs: nowMs + 100 });

describe('the turn of the scheduler', () => {
  it('has one pass at a time, and another one when its time is over', async () => {
    const queue = queueStore(memoryItemStore());
    expect(await queue.begin(pass('a'))).toBe(0);
    expect(await queue.begin(pass('b'))).toBe('busy');
    expect(await queue.begin(pass('b', 99))).toBe('busy');
    expect(await queue.begin(pass('b', 100))).toBe(0);
    expect((await queue.peek()).busyUntilMs).toBe(200);
  });

  it('ends with the requests that it served, and with the time at which it is due again', async () => {
    const queue = queueStore(memoryItemStore());
    expect(await queue.request()).toMatchObject({ wanted: 1, done: 0, busyUntilMs: 0 });
    expect(await queue.begin(pass('a'))).toBe(1);
    expect(await queue.end({ id: 'a', wanted: 1, dueAtMs: 500 })).toBe('ended');
    const turn = await queue.peek();
    expect(turn).toEqual({ wanted: 1, done: 1, busyUntilMs: 0, dueAtMs: 500 });
    expect([isWanted(turn, 499), isWanted(turn, 500)]).toEqual([false, true]);
    await queue.begin(pass('b'));
    await queue.end({ id: 'b', wanted: 1, dueAtMs: undefined });
    expect((await queue.peek()).dueAtMs).toBeUndefined();
  });

  it('continues for a request that came since it read the cluster', async () => {
    const queue = queueStore(memoryItemStore());
    await queue.begin(pass('a'));
    await queue.request();
    expect(await queue.end({ id: 'a', wanted: 0, dueAtMs: undefined })).toBe('wanted');
    expect((await queue.peek()).busyUntilMs).toBe(100);
    expect(await queue.wanted()).toBe(1);
    await queue.request();
    expect(await queue.end({ id: 'a', wanted: 1, dueAtMs: undefined })).toBe('wanted');
    expect(await queue.end({ id: 'a', wanted: 2, dueAtMs: undefined })).toBe('ended');
  });

  it('of another pass is neither ended nor abandoned', async () => {
    const queue = queueStore(memoryItemStore());
    await queue.begin(pass('a'));
    await queue.begin(pass('b', 100));
    expect(await queue.end({ id: 'a', wanted: 0, dueAtMs: undefined })).toBe('ended');
    await queue.abandon('a');
    expect((await queue.peek()).busyUntilMs).toBe(200);
  });

  it('that failed is free at once, and its requests stay', async () => {
    const queue = queueStore(memoryItemStore());
    await queue.request();
    await queue.begin(pass('a'));
    await queue.abandon('a');
    const turn = await queue.peek();
    expect([turn.busyUntilMs, isWanted(turn, 0)]).toEqual([0, true]);
    expect(await queue.begin(pass('b'))).toBe(1);
  });
});

describe('waiting pods', () => {
  const row: WaitingRow = {
    key: 'shop/web',
    uid: 'u',
    rejections: 1,
    errors: 2,
    triedAtMs: 3,
    plugins: ['NodePorts', 'NodeAffinity'],
    isRequeued: true,
    queuedAtMs: 4,
    eventAtMs: 5,
    process: 'p',
    changesSeen: 6,
  };

  it('are stored until they are dropped, apart from the turn and the order', async () => {
    const items = memoryItemStore();
    const queue = queueStore(items);
    await queue.request();
    await items.write(advanceOrder(0));
    const other = { ...row, key: 'shop/api', isRequeued: false, plugins: [] };
    await queue.putRow(row);
    await queue.putRow(other);
    expect(await queue.rows()).toEqual([other, row]);
    await queue.dropRow(other.key);
    expect(await queue.rows()).toEqual([row]);
  });
});

it('the order of bindings advances once from each version', async () => {
  const items = memoryItemStore();
  const queue = queueStore(items);
  const advance = async (seen: number) => (await items.write(advanceOrder(seen))).kind;
  expect(await queue.orderVersion()).toBe(0);
  expect([await advance(1), await advance(0), await advance(0), await advance(1)]).toEqual([
    'refused',
    'written',
    'refused',
    'written',
  ]);
  expect(await queue.orderVersion()).toBe(2);
});
