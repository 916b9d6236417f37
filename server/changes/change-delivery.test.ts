import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { StoreFault } from '../../shared/store/item-store.ts';
import type { ChangesOutcome, ItemChangeRecord } from '../../shared/ticks/item-change.ts';
import { CHANGES_GIVEN_UP, changeDelivery, type PendingChange } from './change-delivery.ts';

const change = (id: number): PendingChange => ({
  id,
  change: { type: 'INSERT', key: { pk: 'o#nodes#00', sk: `n${id}` }, newImage: { id } },
});
const DONE: ChangesOutcome = { faults: [], postponed: [] };

/**
 * The rows of one consumer. `handle` answers each batch; without it, batches succeed. `soon` runs a deletion of rows.
 */
function delivered(
  handle: (ids: readonly number[]) => ChangesOutcome | Promise<ChangesOutcome> = () => DONE,
  soon: (deletion: () => void) => void = (deletion) => deletion(),
) {
  const rows = new Map<number, PendingChange>();
  const batches: number[][] = [];
  const pauses: number[] = [];
  const counted: string[] = [];
  const errors: string[] = [];
  let reads = 0;
  let readFaults = 0;
  let isPausing = true;
  const delivery = changeDelivery({
    changes: {
      pending(_, limit) {
        reads += 1;
        if (readFaults > 0) {
          readFaults -= 1;
          throw new StoreFault('unreachable', 'disk I/O error', { retryable: true });
        }
        return [...rows.values()].slice(0, limit);
      },
      processed(ids) {
        soon(() => {
          for (const id of ids) rows.delete(id);
        });
      },
    },
    consumers: {
      stream: async (records: readonly ItemChangeRecord[]) => {
        const ids = records.map(({ newImage }) => Number(newImage?.['id']));
        batches.push(ids);
        return handle(ids);
      },
    },
    pause: async (milliseconds, stopped) => {
      pauses.push(milliseconds);
      if (!isPausing) await once(stopped, 'abort');
      await new Promise((done) => setImmediate(done));
    },
    log: { debug() {}, info() {}, warn() {}, error: (message) => void errors.push(message) },
    meter: { add: (name) => void counted.push(name) },
  });
  const commit = (...ids: readonly number[]): void => {
    for (const id of ids) {
      rows.set(id, change(id));
      delivery.offer('stream', change(id));
    }
  };
  const rest = async (): Promise<void> => {
    for (let turns = 0; turns < 1_000 && rows.size > 0; turns += 1) await new Promise((done) => setImmediate(done));
  };
  return {
    delivery,
    rows,
    batches,
    pauses,
    counted,
    errors,
    commit,
    rest,
    reads: () => reads,
    failReads(count: number) {
      readFaults = count;
    },
    /** A pause then ends with the stop alone. */
    holdPauses() {
      isPausing = false;
    },
  };
}

describe('the delivery of committed changes', () => {
  it('processes what an earlier process left behind, before what is new', async () => {
    const { delivery, rows, batches, commit, rest } = delivered();
    rows.set(1, change(1));
    delivery.start();
    commit(2);
    await rest();
    expect(batches.flat()).toEqual([1, 2]);
  });

  it('delivers in batches of 100, in the order of the commits, each once', async () => {
    const { delivery, batches, commit, rest } = delivered();
    delivery.start();
    await new Promise((done) => setImmediate(done));
    commit(...Array.from({ length: 250 }, (_, index) => index + 1));
    await rest();
    expect(batches.flat()).toEqual(Array.from({ length: 250 }, (_, index) => index + 1));
    expect(Math.max(...batches.map(({ length }) => length))).toBe(100);
  });

  it('delivers the rest of a batch again, after a pause, and forgets what was processed', async () => {
    let isFirst = true;
    const { delivery, batches, pauses, commit, rest } = delivered(() => {
      if (!isFirst) return DONE;
      isFirst = false;
      return { failedFrom: 1, faults: [new Error('now')], postponed: [] };
    });
    delivery.start();
    await new Promise((done) => setImmediate(done));
    commit(1, 2, 3);
    await rest();
    expect(batches.flat().slice(-2)).toEqual([2, 3]);
    expect(pauses).toEqual([100]);
  });

  it('delivers a change once that is read from its row before its commit is reported', async () => {
    const { delivery, rows, batches, rest } = delivered();
    // Two commits of one item. The rows exist before the process learns that they are durable.
    for (const id of [1, 2]) rows.set(id, change(id));
    delivery.start();
    await rest();
    for (const id of [1, 2]) delivery.offer('stream', change(id));
    await new Promise((done) => setImmediate(done));
    expect(batches.flat()).toEqual([1, 2]);
  });

  it('does not deliver a processed change again, although its row still exists', async () => {
    let deletions: (() => void)[] = [];
    const { delivery, rows, batches, rest } = delivered(undefined, (deletion) => void deletions.push(deletion));
    // More than are read at once: the rows are read a second time.
    const ids = Array.from({ length: 1_050 }, (_, index) => index + 1);
    for (const id of ids) rows.set(id, change(id));
    delivery.start();
    for (let turns = 0; turns < 1_000 && deletions.length < 10; turns += 1)
      await new Promise((done) => setImmediate(done));
    for (const deletion of deletions) deletion();
    deletions = [];
    for (let turns = 0; turns < 1_000 && batches.flat().length < ids.length; turns += 1)
      await new Promise((done) => setImmediate(done));
    for (const deletion of deletions) deletion();
    await rest();
    expect(batches.flat()).toEqual(ids);
  });

  it('gives up one change after its deliveries, says so, and continues with the others', async () => {
    const { delivery, rows, counted, errors, commit, rest, batches } = delivered((ids) => {
      const at = ids.indexOf(2);
      return at === -1 ? DONE : { failedFrom: at, faults: [new Error('never')], postponed: [] };
    });
    delivery.start();
    await new Promise((done) => setImmediate(done));
    commit(1, 2, 3);
    await rest();
    expect(rows.size).toBe(0);
    expect([counted, errors]).toEqual([[CHANGES_GIVEN_UP], ['a change could not be processed']]);
    expect(batches.filter((ids) => ids.includes(2)).length).toBeLessThanOrEqual(12);
    expect(batches.at(-1)).toEqual([3]);
  });

  it('treats a consumer that rejects as one that failed', async () => {
    let isFirst = true;
    const { delivery, pauses, commit, rest, rows } = delivered(() => {
      if (!isFirst) return DONE;
      isFirst = false;
      throw new StoreFault('unreachable', 'disk full', { retryable: true });
    });
    delivery.start();
    await new Promise((done) => setImmediate(done));
    commit(1);
    await rest();
    expect([rows.size, pauses]).toEqual([0, [100]]);
  });

  it('reads the rows again when they could not be read', async () => {
    const { delivery, rows, pauses, errors, failReads, rest } = delivered();
    rows.set(1, change(1));
    failReads(2);
    delivery.start();
    await rest();
    expect([rows.size, pauses.length]).toEqual([0, 2]);
    expect(errors).toEqual(['pending changes could not be read', 'pending changes could not be read']);
  });

  it('does not wait for the next delivery of a batch that fails when it ends', async () => {
    const { delivery, rows, pauses, holdPauses, commit } = delivered(() => ({
      failedFrom: 0,
      faults: [new Error('never')],
      postponed: [],
    }));
    holdPauses();
    delivery.start();
    commit(1);
    for (let turns = 0; turns < 100 && pauses.length === 0; turns += 1) await new Promise((done) => setImmediate(done));
    await delivery.stop();
    expect(rows.size).toBe(1);
  });

  it('continues with what a stop has left of a batch when it starts again', async () => {
    let isFailing = true;
    const { delivery, rows, pauses, holdPauses, commit, rest } = delivered(() =>
      isFailing ? { failedFrom: 1, faults: [new Error('once')], postponed: [] } : DONE,
    );
    holdPauses();
    delivery.start();
    commit(1, 2, 3);
    for (let turns = 0; turns < 100 && pauses.length === 0; turns += 1) await new Promise((done) => setImmediate(done));
    expect(delivery.waiting().changes).toBe(2);
    await delivery.stop();
    isFailing = false;
    delivery.start();
    await rest();
    expect([...rows.keys()]).toEqual([]);
    expect(delivery.waiting()).toEqual({ changes: 0, isBehind: false });
  });

  it('keeps a bounded number of changes in memory, and reads the rest from their rows', async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { delivery, batches, commit, rest, rows, reads } = delivered(async () => {
      await gate;
      return DONE;
    });
    delivery.start();
    await new Promise((done) => setImmediate(done));
    const count = 25_000;
    commit(...Array.from({ length: count }, (_, index) => index + 1));
    expect(delivery.waiting()).toEqual({ changes: expect.any(Number), isBehind: true });
    expect(delivery.waiting().changes).toBeLessThanOrEqual(10_000);
    open();
    await rest();
    expect(rows.size).toBe(0);
    expect(new Set(batches.flat()).size).toBe(count);
    expect(reads()).toBeGreaterThan(1);
  });

  it('ends after the batch that is being processed, and leaves the rows of the others', async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { delivery, rows, commit } = delivered(async () => {
      await gate;
      return DONE;
    });
    delivery.start();
    await new Promise((done) => setImmediate(done));
    commit(...Array.from({ length: 150 }, (_, index) => index + 1));
    const stopped = delivery.stop();
    open();
    await stopped;
    expect(rows.size).toBeGreaterThanOrEqual(50);
  });
});
