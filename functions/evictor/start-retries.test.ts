import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { UNBOUNDED } from '../../shared/ticks/bounded-work.ts';
import { parkedStore } from '../../shared/ticks/parked-store.ts';
import { readDueRetries, startRetries } from './start-retries.ts';

function parked() {
  const items = memoryItemStore();
  const counted: [string, number][] = [];
  const errors: string[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void errors.push(message) };
  const dependencies = {
    items,
    log,
    meter: { add: (name: string, value: number) => void counted.push([name, value]) },
  };
  return {
    items,
    counted,
    errors,
    store: parkedStore(items),
    park: (name: string, nowMs: number) =>
      parkedStore(items).park(
        { resource: 'pods', namespace: 'd', name, uid: `u-${name}`, resourceVersion: 1, text: '{}' },
        ['cidrs'],
        nowMs,
      ),
    due: (nowMs: number) => readDueRetries(dependencies, nowMs),
    start: async (nowMs: number, budget = UNBOUNDED) =>
      startRetries(dependencies, await readDueRetries(dependencies, nowMs), { nowMs, budget }),
    retries: () => items.items('objects').map(({ pk }) => String(pk)),
  };
}

describe('retries of parked works', () => {
  it('are those that are due, longest due first, 400 at most', async () => {
    const { park, due } = parked();
    for (let index = 401; index > 0; index -= 1) await park(`p${index}`, index);
    const idsAt = async (nowMs: number) => (await due(nowMs)).map(({ dueMs }) => dueMs);
    expect(await idsAt(3)).toEqual([1, 2, 3]);
    expect(await idsAt(0)).toEqual([]);
    const all = await idsAt(1_000);
    expect([all.length, all[0], all.at(-1)]).toEqual([400, 1, 400]);
  });

  it('are started once, and due again later', async () => {
    const { park, start, retries, store, counted } = parked();
    await park('a', 0);
    expect(await start(0)).toEqual([]);
    expect(retries()).toHaveLength(1);
    expect(retries()[0]).toContain('u-a');
    const [row] = await store.list();
    expect([row?.dueMs, row?.tries]).toEqual([5_000, 1]);
    await start(5_000);
    expect((await store.list())[0]).toMatchObject({ dueMs: 15_000, tries: 2 });
    expect(counted).toEqual([]);
  });

  it('are left when the time is over', async () => {
    const { park, start, retries } = parked();
    await park('a', 0);
    await start(0, { hasTime: () => false });
    expect(retries()).toEqual([]);
  });

  it('without a result for two hours are given up, and reported', async () => {
    const { park, start, retries, store, items, counted, errors } = parked();
    await park('a', 0);
    const [{ id } = { id: '' }] = await store.list();
    await items.write({ kind: 'update', key: { table: 'control', pk: 'parked', sk: id }, set: { tries: 360 } });
    await start(7_199_999);
    expect([await store.list(), counted].map(({ length }) => length)).toEqual([1, 0]);
    await start(7_300_000);
    expect(await store.list()).toEqual([]);
    expect([counted, errors.length]).toEqual([[['stream_records_given_up_total', 1]], 1]);
    expect(retries()).toHaveLength(1);
  });

  it('that fail are faults of their rows alone', async () => {
    const { park, due, items, store } = parked();
    for (const name of ['a', 'b']) await park(name, 0);
    const failing = {
      ...items,
      write: (write: Parameters<typeof items.write>[0]) =>
        write.key.pk.includes('u-a') ? Promise.reject(new Error('down')) : items.write(write),
    };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const faults = await startRetries({ items: failing, log, meter: { add() {} } }, await due(0), {
      nowMs: 0,
      budget: UNBOUNDED,
    });
    expect(faults).toHaveLength(1);
    expect((await store.list()).map(({ tries }) => tries).toSorted()).toEqual([0, 1]);
  });
});
