import { describe, expect, it } from 'vitest';
import { StoreFault } from '../store/item-store.ts';
import { UNBOUNDED } from './bounded-work.ts';
import {
  type ChangesOutcome,
  combined,
  handleRecords,
  type ItemChangeRecord,
  isRetryable,
  runRecordWorks,
} from './item-change.ts';

const THROTTLED = new StoreFault('throttled', 'throttled', { retryable: true });
const TOO_LARGE = new StoreFault('too-large', 'too large', { retryable: false });

it.each([
  [THROTTLED, true],
  [TOO_LARGE, false],
  [new TypeError('x'), false],
  [new RangeError('x'), false],
  [new SyntaxError('x'), false],
  [new ReferenceError('x'), false],
  [new Error('x'), true],
  ['x', true],
  [new AggregateError([TOO_LARGE, THROTTLED]), true],
  [new AggregateError([TOO_LARGE, new TypeError('x')]), false],
  [new AggregateError([]), false],
])('%s is worth another attempt: %s', (fault, expected) => {
  expect(isRetryable(fault)).toBe(expected);
});

describe('works of records', () => {
  const failing = (...faults: readonly unknown[]) => {
    const left = [...faults];
    const work = {
      of: [0],
      runs: 0,
      async run() {
        work.runs += 1;
        if (left.length > 0) throw left.shift();
      },
    };
    return work;
  };
  const options = { concurrencyMax: 2, retryBudget: UNBOUNDED };

  it('that fail for a moment run once more', async () => {
    const works = [failing(), failing(THROTTLED), failing(THROTTLED, THROTTLED)];
    const failed = await runRecordWorks(works, options);
    expect([...failed]).toEqual([[works[2], THROTTLED]]);
    expect(works.map(({ runs }) => runs)).toEqual([1, 2, 2]);
  });

  it('that can never succeed do not, and have their last fault', async () => {
    const works = [failing(TOO_LARGE, THROTTLED), failing(THROTTLED, TOO_LARGE)];
    const failed = await runRecordWorks(works, options);
    expect([...failed]).toEqual([
      [works[0], TOO_LARGE],
      [works[1], TOO_LARGE],
    ]);
    expect(works.map(({ runs }) => runs)).toEqual([1, 2]);
  });

  it('run once, all of them, and not again when the time is over', async () => {
    const works = [failing(THROTTLED), failing()];
    const failed = await runRecordWorks(works, { concurrencyMax: 2, retryBudget: { hasTime: () => false } });
    expect([...failed.keys()]).toEqual([works[0]]);
    expect(works.map(({ runs }) => runs)).toEqual([1, 1]);
  });
});

describe('a batch of records', () => {
  const records = ['a', 'b', 'c', 'd', 'e'].map((sk): ItemChangeRecord => ({ type: 'MODIFY', key: { pk: 'p', sk } }));

  async function handled(handle: (names: readonly string[]) => ChangesOutcome | Error, of = records) {
    const counted: [string, number][] = [];
    const batches: string[] = [];
    const meter = { add: (name: string, value: number) => void counted.push([name, value]) };
    const outcome = await handleRecords({ meter }, of, async (part) => {
      const names = part.map(({ key }) => key.sk);
      batches.push(names.join(''));
      const result = handle(names);
      if (result instanceof Error) throw result;
      return result;
    });
    return { outcome, counted, batches };
  }
  const DONE: ChangesOutcome = { faults: [], postponed: [] };

  it('is handled at once, and counts nothing when nothing fails', async () => {
    expect(await handled(() => DONE)).toEqual({ outcome: DONE, counted: [], batches: ['abcde'] });
  });

  it('counts what it gives up and what it postpones', async () => {
    const { counted } = await handled(() => ({ faults: [TOO_LARGE, THROTTLED, TOO_LARGE], postponed: [THROTTLED] }));
    expect(counted).toEqual([
      ['stream_records_given_up_total', 2],
      ['stream_record_works_postponed_total', 1],
    ]);
  });

  it('gives up the record that cannot be read, and handles the others', async () => {
    const bad = new TypeError('d');
    const { outcome, batches, counted } = await handled((names) => (names.includes('d') ? bad : DONE));
    expect(batches).toEqual(['abcde', 'abc', 'de', 'd', 'e']);
    expect(outcome).toEqual({ faults: [bad], postponed: [] });
    expect(counted).toEqual([['stream_records_given_up_total', 1]]);
  });

  it('is delivered again as a whole when the store rejects it', async () => {
    const { outcome, batches, counted } = await handled(() => THROTTLED);
    expect(outcome).toEqual({ failedFrom: 0, faults: [THROTTLED], postponed: [] });
    expect([batches, counted]).toEqual([['abcde'], []]);
  });

  it('is delivered again from the first record that failed, counted in the whole batch', async () => {
    const { outcome } = await handled((names) => {
      if (names.length === 5) return new TypeError('x');
      return names[0] === 'a' ? DONE : { ...DONE, failedFrom: 1 };
    });
    expect(outcome.failedFrom).toBe(4);
  });

  it('of parts has the faults of all, and the first failed position', () => {
    expect(
      combined({ faults: [1], postponed: [2], failedFrom: 4 }, { faults: [3], postponed: [], failedFrom: 2 }, DONE),
    ).toEqual({
      faults: [1, 3],
      postponed: [2],
      failedFrom: 2,
    });
    expect(combined(DONE, DONE)).toEqual(DONE);
  });
});
