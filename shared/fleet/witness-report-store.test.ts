import { beforeEach, describe, expect, it } from 'vitest';
import { recordedReads } from '../../test/support/recorded-reads.ts';
import type { ItemUpdater } from '../store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../store/memory/item-store.ts';
import { forgetReport, type ReceivedReport, readReports, storeReport } from './witness-report-store.ts';

const START_MS = 1_000_000;
const KEY = { table: 'control', pk: 'witnesses', sk: 'hub' } as const;

let items: MemoryItemStore;
let writes: number;
beforeEach(() => {
  items = memoryItemStore();
  writes = 0;
});

const counting: ItemUpdater = {
  write: (write, options) => {
    writes += 1;
    return items.write(write, options);
  },
} as ItemUpdater;

const report = (
  afterMs: number,
  names: readonly string[],
  more: Partial<ReceivedReport> & { hasTime?: boolean } = {},
) => {
  const { hasTime = true, ...given } = more;
  const received: ReceivedReport = { reporter: 'hub', role: 'hub', names, nowMs: START_MS + afterMs, ...given };
  return storeReport(counting, received, () => hasTime);
};
const row = async () => (await items.get(KEY, { consistent: true })) ?? {};
/** Attributes with this prefix, with milliseconds since the start. */
const timesOf = async (prefix: string) =>
  Object.fromEntries(
    Object.entries(await row()).flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(2), Number(value) - START_MS]] : [],
    ),
  );

describe('a stored report', () => {
  it('is one write while nothing is withdrawn, and expires a minute later', async () => {
    await report(0, ['a']);
    await report(10_000, ['a', 'b']);
    expect(writes).toBe(2);
    expect(await row()).toMatchObject({ role: 'hub', names: 'a,b', at: START_MS + 10_000, ttl: 1_010 + 60 });
    expect(await timesOf('s#')).toEqual({ a: 0, b: 10_000 });
  });

  it('replaces an earlier one, and no later one or one of the same moment', async () => {
    await report(10_000, ['a']);
    await report(10_000, ['b']);
    await report(9_999, ['c']);
    expect(await row()).toMatchObject({ names: 'a' });
    await report(10_001, ['d']);
    expect(await row()).toMatchObject({ names: 'd' });
  });

  it('begins anew after a pause of more than 30 s', async () => {
    await report(0, ['a']);
    await report(30_000, ['a']);
    expect(await timesOf('s#')).toEqual({ a: 0 });
    expect(writes).toBe(2);
    await report(60_001, ['a', 'b']);
    expect(await timesOf('s#')).toEqual({ a: 60_001, b: 60_001 });
    expect(writes).toBe(4);
  });

  it('without time for its second write leaves what it withdraws to the next one', async () => {
    await report(0, ['a']);
    await report(1_000, [], { hasTime: false });
    expect(await timesOf('s#')).toEqual({ a: 0 });
    await report(2_000, []);
    expect([await timesOf('s#'), await timesOf('w#')]).toEqual([{}, { a: 2_000 }]);
  });

  it('forgets what it withdrew more than 30 s ago', async () => {
    await report(0, ['a']);
    await report(1_000, []);
    await report(31_000, []);
    expect(await timesOf('w#')).toEqual({ a: 1_000 });
    await report(31_001, []);
    expect(await timesOf('w#')).toEqual({});
  });

  it('remembers what it withdrew last, with 1,000 characters of names', async () => {
    const names = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => `n${from + index}${'-'.repeat(17)}`);
    await report(0, names(10, 20));
    await report(1_000, names(30, 20));
    await report(2_000, names(50, 20));
    await report(3_000, []);
    const times = Object.values(await timesOf('w#'));
    expect(times.filter((time) => time === 3_000)).toHaveLength(20);
    expect(times.filter((time) => time === 2_000)).toHaveLength(20);
    expect(times.filter((time) => time === 1_000)).toHaveLength(10);
  });

  it('changes nothing that a later one has written before its second write', async () => {
    await report(0, ['a']);
    const overtaken: ItemUpdater = {
      async write(write, options) {
        const outcome = await items.write(write, options);
        if (writes === 1) await report(2_000, ['a']);
        return outcome;
      },
    } as ItemUpdater;
    writes = 1;
    await storeReport(overtaken, { reporter: 'hub', role: 'hub', names: [], nowMs: START_MS + 1_000 }, () => true);
    expect([await timesOf('s#'), await timesOf('w#')]).toEqual([{ a: 0 }, {}]);
  });
});

describe('reading reports', () => {
  it('reads those of all reporters in one query, without a strong read', async () => {
    await report(0, ['a', 'b']);
    await report(1_000, ['b'], { hasTime: true });
    await report(2_000, ['c'], { reporter: 'm', role: 'machine' });
    const reads = recordedReads(items);
    expect(await readReports(reads.items)).toEqual([
      {
        reporter: 'hub',
        role: 'hub',
        receivedAtMs: START_MS + 1_000,
        sinceMs: new Map([['b', START_MS]]),
        withdrawnAtMs: new Map([['a', START_MS + 1_000]]),
      },
      {
        reporter: 'm',
        role: 'machine',
        receivedAtMs: START_MS + 2_000,
        sinceMs: new Map([['c', START_MS + 2_000]]),
        withdrawnAtMs: new Map(),
      },
    ]);
    expect(reads.take()).toEqual(['witnesses eventual']);
  });

  it('leaves out a machine that the last report no longer names', async () => {
    await report(0, ['a']);
    await report(1_000, ['b'], { hasTime: false });
    const [found] = await readReports(items);
    expect([...found!.sinceMs.keys()]).toEqual(['b']);
  });

  it('reads one page', async () => {
    const more: Parameters<typeof readReports>[0] = {
      query: async () => ({ items: [{ sk: 'r', role: 'hub', names: '', at: 1 }], next: 'r' }),
    };
    expect((await readReports(more)).map(({ reporter }) => reporter)).toEqual(['r']);
  });
});

const REPORTERS = 1_000;
/** A read of a tick costs no more, whatever machines report: a page of 1 MB. */
const READ_UNITS_MAX = 129;

/** Read units of one tick, with this many names of this length in each of several reports of each machine. */
async function readUnits(names: number, length: number, reports: number): Promise<{ units: number; read: number }> {
  let units = 0;
  const items = memoryItemStore({ onConsumed: ({ readUnits = 0 }) => (units += readUnits) });
  for (let report = 0; report < reports; report += 1) {
    for (let index = 0; index < REPORTERS; index += 1) {
      await storeReport(
        items,
        {
          reporter: `machine-${index}`,
          role: 'machine',
          names: Array.from({ length: names }, (_, name) => `n-${report}-${String(name).padStart(length - 4, '0')}`),
          nowMs: 1_000 * report + 1,
        },
        () => true,
      );
    }
  }
  units = 0;
  const read = (await readReports(items)).length;
  return { units, read };
}

it('reads the reports of a thousand machines, one silent machine each, with ten read units', async () => {
  const { units, read } = await readUnits(1, 12, 1);
  expect(read).toBe(REPORTERS);
  expect(units).toBeLessThanOrEqual(10);
});

it('reads one page of the reports of a thousand machines that lie', async () => {
  const { units, read } = await readUnits(4, 245, 10);
  expect(units).toBeLessThanOrEqual(READ_UNITS_MAX);
  expect(read).toBeGreaterThan(200);
});

it('a report is forgotten when it is more than a minute old, unless it was received again', async () => {
  await report(0, ['a']);
  const [found] = await readReports(items);
  expect(forgetReport(found!, START_MS + 60_000)).toBeUndefined();
  const write = forgetReport(found!, START_MS + 60_001)!;
  await report(60_001, ['a']);
  expect((await items.write(write)).kind).toBe('refused');
  const [again] = await readReports(items);
  expect((await items.write(forgetReport(again!, START_MS + 700_000)!)).kind).toBe('written');
  expect(await readReports(items)).toEqual([]);
});
