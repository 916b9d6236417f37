import { describe, expect, it } from 'vitest';
import type { ItemStore, TransactOutcome } from './item-store.ts';
import { memoryItemStore } from './memory/item-store.ts';
import { type CommitOutcome, objectStore } from './object-store.ts';

const T0 = Date.UTC(2026, 0, 1);
/** The writes of a commit of one object: the object, its log entry, the head of its shard. */
const HEAD_AT = 2;

/** Commits one object; `answers` are those of the first transactions, then the memory store's. */
async function commitOne(
  answers: readonly TransactOutcome[],
  options: { readonly random?: () => number } = { random: () => 0.5 },
): Promise<{ outcome: CommitOutcome; pausesMs: number[]; transactions: number }> {
  const memory = memoryItemStore();
  const pausesMs: number[] = [];
  let transactions = 0;
  const items: ItemStore = {
    ...memory,
    async transact(writes) {
      transactions += 1;
      return answers[transactions - 1] ?? memory.transact(writes);
    },
  };
  const store = objectStore({
    ...options,
    items,
    clock: { nowMs: () => T0 },
    shardsOf: () => 1,
    pause: async (ms) => void pausesMs.push(ms),
  });
  const outcome = await store.commit({
    writes: [
      { kind: 'create', ref: { resource: 'things', namespace: '', name: 'a' }, object: { metadata: { name: 'a' } } },
    ],
  });
  return { outcome, pausesMs, transactions };
}

const CONTENDED: TransactOutcome = { kind: 'contended' };
const headRefused = (version?: number): TransactOutcome => ({
  kind: 'refused',
  failures: [{ index: HEAD_AT, ...(version === undefined ? {} : { current: { rv: version } }) }],
});

describe('a commit that meets another one', () => {
  it('waits twice as long before each attempt, up to a limit, and then gives up', async () => {
    const { outcome, pausesMs, transactions } = await commitOne(Array.from({ length: 10 }, () => CONTENDED));
    expect(outcome).toEqual({ kind: 'contended' });
    expect(transactions).toBe(10);
    expect(pausesMs).toEqual([7.5, 15, 30, 60, 120, 150, 150, 150, 150]);
  });

  it('waits half the time at least and all of it at most', async () => {
    expect((await commitOne([CONTENDED], { random: () => 0 })).pausesMs).toEqual([5]);
    expect((await commitOne([CONTENDED], { random: () => 1 })).pausesMs).toEqual([10]);
  });

  it('waits the mean time without randomness', async () => {
    expect((await commitOne([CONTENDED], {})).pausesMs).toEqual([7.5]);
  });

  it('tries again at once above the version of the head that refused it, and waits from the second refusal on', async () => {
    const ahead = (T0 + 60_000) * 1_000;
    const { outcome, pausesMs } = await commitOne([headRefused(ahead), headRefused(ahead + 7)]);
    expect(pausesMs).toEqual([15]);
    expect(outcome).toMatchObject({
      kind: 'committed',
      objects: [{ metadata: { name: 'a', resourceVersion: String(ahead + 8) } }],
    });
  });

  it('commits after the refusal of a head that is absent by then', async () => {
    const { outcome } = await commitOne([headRefused()]);
    expect(outcome).toMatchObject({ kind: 'committed', objects: [{ metadata: { name: 'a' } }] });
  });
});
