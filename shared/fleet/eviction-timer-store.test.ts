import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../store/memory/item-store.ts';
import type { EvictionTimer } from './eviction.rule.ts';
import { evictionTimerStore } from './eviction-timer-store.ts';

const timer = (index: number, atMs = 1_000_000 + index, name = `pod-${index}`): EvictionTimer => ({
  namespace: 'default',
  name,
  podUid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
  atMs,
});
const long = (index: number): EvictionTimer => timer(index, 1_000_000 + index, `${index}-`.padEnd(253, 'x'));
const byUid = (timers: readonly EvictionTimer[]) => timers.toSorted((a, b) => (a.podUid < b.podUid ? -1 : 1));

describe('eviction timers', () => {
  it('are read as they were stored, however many there are and however they change, and leave no items behind', async () => {
    const change = fc.record({ count: fc.constantFrom(0, 1, 3, 400, 900, 1_300), shift: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 5 }), async (changes) => {
        const items = memoryItemStore();
        const store = evictionTimerStore(items);
        for (const { count, shift } of changes) {
          const timers = Array.from({ length: count }, (_, index) => ({
            ...long(index),
            atMs: 5_000 * shift + index + 1,
          }));
          expect(await store.replace(await store.read('n'), timers)).toBe('written');
          expect(byUid((await store.read('n')).timers)).toEqual(byUid(timers));
          expect(await store.readDue(Number.MAX_SAFE_INTEGER)).toEqual(count === 0 ? [] : ['n']);
        }
        await store.replace(await store.read('n'), []);
        expect(items.items('control')).toEqual([]);
      }),
      { numRuns: 15 },
    );
  });

  it('of a node with too many are the earliest ones: the node is due in time', async () => {
    const items = memoryItemStore();
    const store = evictionTimerStore(items);
    const timers = Array.from({ length: 7_000 }, (_, index) => long(7_000 - index));
    expect(await store.replace(await store.read('n'), timers)).toBe('written');
    const stored = (await store.read('n')).timers;
    expect(stored.length).toBeGreaterThan(4_000);
    expect(stored.length).toBeLessThan(7_000);
    expect(Math.max(...stored.map(({ atMs }) => atMs))).toBe(1_000_000 + stored.length);
    expect(await store.readDue(1_000_001)).toEqual(['n']);
  });

  it('are read from a row of an earlier version, and divided at its next write', async () => {
    const items = memoryItemStore();
    const store = evictionTimerStore(items);
    const old = Array.from({ length: 800 }, (_, index) => long(index));
    const key = { table: 'control', pk: 'evictions#n', sk: '-' } as const;
    await items.write({ kind: 'put', key, item: { timers: JSON.stringify(old), due: 1_000_000, version: 7 } });
    const before = await store.read('n');
    expect(before.timers).toEqual(old);
    const more = [...old, ...Array.from({ length: 400 }, (_, index) => long(800 + index))];
    expect(await store.replace(before, more)).toBe('written');
    expect(byUid((await store.read('n')).timers)).toEqual(byUid(more));
    expect(items.items('control').filter(({ pk }) => pk === 'evictions#n').length).toBeGreaterThan(1);
  });

  it('write only the part that changed, and nothing when none did', async () => {
    const writes: string[] = [];
    const items = memoryItemStore();
    const store = evictionTimerStore({
      ...items,
      transact: (all) => {
        writes.push(all.map(({ key }) => `${key.pk} ${key.sk}`).join());
        return items.transact(all);
      },
    });
    const timers = Array.from({ length: 1_200 }, (_, index) => long(index));
    await store.replace(await store.read('n'), timers);
    writes.length = 0;
    await store.replace(await store.read('n'), timers);
    expect(writes).toEqual([]);
    await store.replace(await store.read('n'), timers.with(600, { ...timers[600]!, atMs: 2_000_000 }));
    expect(writes[0]?.split(',').length).toBeLessThanOrEqual(2);
  });

  it('never mix two versions, even when they change between the reads of their parts', async () => {
    const items = memoryItemStore();
    const plain = evictionTimerStore(items);
    const at = (atMs: number) => Array.from({ length: 1_200 }, (_, index) => ({ ...long(index), atMs }));
    await plain.replace(await plain.read('n'), at(1_000));
    let torn = false;
    const store = evictionTimerStore({
      ...items,
      async get(key, options) {
        if (key.sk === 'p1' && !torn) {
          torn = true;
          await plain.replace(await plain.read('n'), at(2_000));
        }
        return items.get(key, options);
      },
    });
    const { timers } = await store.read('n');
    expect(torn).toBe(true);
    expect(new Set(timers.map(({ atMs }) => atMs))).toEqual(new Set([2_000]));
  });
});
