import { expect, it } from 'vitest';
import { type ItemKey, type ItemStore, StoreFault, type TransactWrite } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { objectStore } from '../../shared/store/object-store.ts';
import { conflictingStore } from './conflicting-store.ts';

const key = (sk: string): ItemKey => ({ table: 'control', pk: 'p', sk });
const put = (sk: string): TransactWrite => ({ kind: 'put', key: key(sk), item: { v: 1 } });

/** Pauses end when the test says so, all together. */
function paused() {
  let waiting: (() => void)[] = [];
  const pause = () => new Promise<void>((resolve) => waiting.push(resolve));
  const store = conflictingStore(memoryItemStore(), { transactionMs: 10, pause, random: () => 0.5 });
  const pass = () => {
    for (const wake of waiting.splice(0)) wake();
    waiting = [];
  };
  return { store, pass };
}

it('cancels a transaction on an item of another one, and applies the first', async () => {
  const { store, pass } = paused();
  const outcomes = Promise.all([store.transact([put('a'), put('b')]), store.transact([put('b'), put('c')])]);
  pass();
  expect(await outcomes).toEqual([{ kind: 'written' }, { kind: 'contended' }]);
  expect(await store.get(key('c'), { consistent: true })).toBeUndefined();
  expect(store.counters).toEqual({ transactions: 2, conflicts: 1 });
});

it('applies transactions on different items at once', async () => {
  const { store, pass } = paused();
  const outcomes = Promise.all([store.transact([put('a')]), store.transact([put('b')])]);
  pass();
  expect(await outcomes).toEqual([{ kind: 'written' }, { kind: 'written' }]);
});

it('repeats a plain write until the transaction on its item has ended', async () => {
  const { store, pass } = paused();
  const transaction = store.transact([put('a')]);
  const write = store.write({ kind: 'update', key: key('a'), set: { v: 2 } });
  pass();
  await transaction;
  pass();
  expect(await write).toEqual({ kind: 'written' });
  expect(await store.get(key('a'), { consistent: true })).toMatchObject({ v: 2 });
});

it('gives up a plain write after a bound', async () => {
  const items = memoryItemStore();
  const never = () => new Promise<void>(() => {});
  let pauses = 0;
  const store = conflictingStore(items, {
    transactionMs: 10,
    pause: () => (pauses++ === 0 ? never() : Promise.resolve()),
    random: () => 0.5,
  });
  void store.transact([put('a')]);
  await expect(store.write({ kind: 'delete', key: key('a') })).rejects.toThrow(StoreFault);
  expect(pauses).toBe(6);
});

it('commits of one process on one head follow each other: none is cancelled, none is billed in vain', async () => {
  const soon = () => new Promise<void>((resolve) => setImmediate(resolve));
  const items = conflictingStore(memoryItemStore(), { transactionMs: 10, pause: soon, random: () => 0.5 });
  const objects = objectStore({
    items: items as ItemStore,
    clock: { nowMs: () => 1_000 },
    shardsOf: () => 1,
    pause: soon,
  });
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, (_, index) => {
      const ref = { resource: 'nodes', namespace: '', name: `n${index}` };
      const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: ref.name } };
      return objects.commit({ writes: [{ kind: 'create', ref, object }] });
    }),
  );
  expect(outcomes.filter(({ kind }) => kind !== 'committed')).toEqual([]);
  expect(items.counters).toEqual({ transactions: 40, conflicts: 0 });
});
