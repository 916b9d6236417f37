import { describe, expect, it } from 'vitest';
import {
  groupedBy,
  inParts,
  inPartsOfBytes,
  inTurn,
  UNBOUNDED,
  workInHalves,
  workThrough,
  workUntil,
} from './bounded-work.ts';

/** Has time for this many looks. */
const looks = (count: number) => {
  let left = count;
  return {
    hasTime() {
      left -= 1;
      return left >= 0;
    },
  };
};
const tick = () => Promise.resolve();

it('a deadline leaves time until it is reached', () => {
  const at = (nowMs: number) => workUntil({ nowMs: () => nowMs }, 10).hasTime();
  expect([at(9), at(10), at(11)]).toEqual([true, false, false]);
});

describe('work on many items', () => {
  it('runs on each item once, at most so many at a time', async () => {
    const done: number[] = [];
    let running = 0;
    let most = 0;
    const outcome = await workThrough([1, 2, 3, 4, 5], { concurrencyMax: 2, budget: UNBOUNDED }, async (item) => {
      running += 1;
      most = Math.max(most, running);
      await tick();
      running -= 1;
      done.push(item);
    });
    expect(outcome).toEqual({ left: 0, faults: [] });
    expect(done.toSorted()).toEqual([1, 2, 3, 4, 5]);
    expect(most).toBe(2);
  });

  it('continues after a fault, and returns it', async () => {
    const fault = new Error('two');
    const done: number[] = [];
    const outcome = await workThrough([1, 2, 3], { concurrencyMax: 1, budget: UNBOUNDED }, async (item) => {
      if (item === 2) throw fault;
      done.push(item);
    });
    expect(outcome).toEqual({ left: 0, faults: [fault] });
    expect(done).toEqual([1, 3]);
  });

  it('begins no item when the time is over, and counts those', async () => {
    const done: number[] = [];
    const outcome = await workThrough([1, 2, 3, 4], { concurrencyMax: 1, budget: looks(2) }, async (item) => {
      done.push(item);
    });
    expect(outcome).toEqual({ left: 2, faults: [] });
    expect(done).toEqual([1, 2]);
  });

  it('has nothing to do without items', async () => {
    const options = { concurrencyMax: 4, budget: UNBOUNDED };
    expect(await workThrough([], options, () => Promise.reject(new Error('called')))).toEqual({ left: 0, faults: [] });
  });
});

describe('work in halves', () => {
  async function halves(
    items: readonly number[],
    decide: (part: readonly number[]) => 'done' | 'split' | Error,
    budget = UNBOUNDED,
  ) {
    const parts: (readonly number[])[] = [];
    const outcome = await workInHalves(items, budget, async (part) => {
      parts.push(part);
      const decided = decide(part);
      if (decided instanceof Error) throw decided;
      return decided;
    });
    return { parts, ...outcome };
  }

  it('is one call when that succeeds, and none without items', async () => {
    expect(await halves([1, 2, 3], () => 'done')).toEqual({ parts: [[1, 2, 3]], left: 0, faults: [] });
    expect(await halves([], () => 'done')).toEqual({ parts: [], left: 0, faults: [] });
  });

  it('isolates the item that fails, the first half first', async () => {
    const fault = new Error('four');
    const found = await halves([1, 2, 3, 4, 5], (part) => (part.includes(4) ? fault : 'done'));
    expect(found).toEqual({
      parts: [[1, 2, 3, 4, 5], [1, 2, 3], [4, 5], [4], [5]],
      left: 1,
      faults: [fault],
    });
  });

  it('leaves a single item that has to be split, without a fault', async () => {
    expect(await halves([1, 2], (part) => (part.includes(1) ? 'split' : 'done'))).toEqual({
      parts: [[1, 2], [1], [2]],
      left: 1,
      faults: [],
    });
  });

  it('leaves what it did not begin in time', async () => {
    const found = await halves([1, 2, 3, 4], (part) => (part.length > 1 ? 'split' : 'done'), looks(2));
    expect(found).toEqual({
      parts: [
        [1, 2, 3, 4],
        [1, 2],
      ],
      left: 4,
      faults: [],
    });
  });
});

it.each([
  [5, 0, '01234'],
  [5, 3, '01234'],
  [3, 0, '012'],
  [3, 1, '340'],
  [3, 2, '123'],
  [2, 7, '40'],
])('five items, at most %i in slot %i, are %s', (itemsMax, slot, expected) => {
  expect(inTurn([...'01234'], itemsMax, slot).join('')).toBe(expected);
});

it('parts have at most so many items', () => {
  expect(inParts([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
  expect(inParts([1, 2], 2)).toEqual([[1, 2]]);
  expect(inParts([], 2)).toEqual([]);
});

it('parts have at most so many bytes, and a larger item is alone', () => {
  const parts = (items: readonly number[], size = 9) => inPartsOfBytes(items, size, 10, (bytes) => bytes);
  expect(parts([4, 6, 1])).toEqual([[4, 6], [1]]);
  expect(parts([4, 7])).toEqual([[4], [7]]);
  expect(parts([50, 1, 50, 2, 3])).toEqual([[50], [1], [50], [2, 3]]);
  expect(parts([1, 1, 1], 2)).toEqual([[1, 1], [1]]);
  expect(parts([])).toEqual([]);
});

it('groups keep the order of their items', () => {
  expect([...groupedBy([3, 1, 2, 5], (item) => item % 2)]).toEqual([
    [1, [3, 1, 5]],
    [0, [2]],
  ]);
});
