import { describe, expect, it } from 'vitest';
import type { ConsumedUnits, Item, ItemKey } from '../item-store.ts';
import { memoryItemStore } from './item-store.ts';

const key = (sk: string, table: ItemKey['table'] = 'health'): ItemKey => ({ table, pk: 'p', sk });

describe('changes of a table in memory', () => {
  it('are inserts, modifications and removals with their images', async () => {
    const store = memoryItemStore({ changesOf: ['health'] });
    await store.write({ kind: 'put', key: key('a'), item: { n: 1 } });
    await store.write({ kind: 'update', key: key('a'), add: { n: 1 } });
    await store.write({ kind: 'delete', key: key('a') });
    expect(store.changes('health')).toEqual([
      { sequence: 1, key: key('a'), type: 'INSERT', newImage: { pk: 'p', sk: 'a', n: 1 }, cause: 'write' },
      {
        sequence: 2,
        key: key('a'),
        type: 'MODIFY',
        oldImage: { pk: 'p', sk: 'a', n: 1 },
        newImage: { pk: 'p', sk: 'a', n: 2 },
        cause: 'write',
      },
      { sequence: 3, key: key('a'), type: 'REMOVE', oldImage: { pk: 'p', sk: 'a', n: 2 }, cause: 'write' },
    ]);
  });

  it('contain no writes that change nothing, and none of other tables', async () => {
    const store = memoryItemStore({ changesOf: ['health'] });
    await store.write({ kind: 'put', key: key('a'), item: { map: { list: [1, 'x'] } } });
    await store.write({ kind: 'put', key: key('a'), item: { map: { list: [1, 'x'] } } });
    await store.write({ kind: 'delete', key: key('b') });
    await store.write({ kind: 'put', key: key('a'), item: {}, when: { kind: 'itemAbsent' } });
    await store.write({ kind: 'put', key: key('a', 'objects'), item: {} });
    expect(store.changes('health')).toHaveLength(1);
    expect(() => store.changes('objects')).toThrow(RangeError);
  });

  it('continue after a sequence number, also when earlier ones are dropped', async () => {
    const store = memoryItemStore({ changesOf: ['health'] });
    for (let n = 1; n <= 6; n += 1) await store.write({ kind: 'put', key: key('a'), item: { n } });
    store.forgetChanges('health', 3);
    expect(store.changes('health', 4).map(({ sequence }) => sequence)).toEqual([5, 6]);
    expect(store.changes('health').map(({ sequence }) => sequence)).toEqual([4, 5, 6]);
    store.forgetChanges('health', 6);
    await store.write({ kind: 'put', key: key('a'), item: { n: 7 } });
    expect(store.changes('health', 6).map(({ sequence }) => sequence)).toEqual([7]);
  });

  it('mark what time to live deleted', async () => {
    const store = memoryItemStore({ changesOf: ['objects'] });
    await store.write({ kind: 'put', key: key('due', 'objects'), item: { ttl: 100 } });
    await store.write({ kind: 'put', key: key('later', 'objects'), item: { ttl: 101 } });
    expect(store.expire('objects', 100)).toBe(1);
    expect(store.changes('objects', 2)).toMatchObject([{ type: 'REMOVE', cause: 'expired' }]);
    expect(store.items('objects').map((item) => item['sk'])).toEqual(['later']);
  });
});

describe('units in memory', () => {
  const units: ConsumedUnits[] = [];
  const store = memoryItemStore({ onConsumed: (consumed) => units.push(consumed) });
  const cost = async (operation: () => Promise<unknown>): Promise<number[]> => {
    units.splice(0);
    await operation();
    return [
      units.reduce((sum, unit) => sum + unit.readUnits, 0),
      units.reduce((sum, unit) => sum + unit.writeUnits, 0),
    ];
  };
  /** An item of this size in bytes, including its keys: `pk` `p`, `sk` `a`, `x`. */
  const ofBytes = (bytes: number): Item => ({ x: 'x'.repeat(bytes - 7) });
  const put = (bytes: number) => store.write({ kind: 'put', key: key('a'), item: ofBytes(bytes) });

  it('round writes up to 1 KB, by the larger item of before and after', async () => {
    expect(await cost(() => put(1_024))).toEqual([0, 1]);
    expect(await cost(() => put(1_025))).toEqual([0, 2]);
    expect(await cost(() => put(100))).toEqual([0, 2]);
    expect(await cost(() => store.write({ kind: 'update', key: key('a'), set: { y: 1 } }))).toEqual([0, 1]);
    expect(await cost(() => store.write({ kind: 'delete', key: key('absent') }))).toEqual([0, 1]);
  });

  it('count a refused write, and a transaction twice', async () => {
    await put(3_000);
    const refused = { kind: 'put', key: key('a'), item: {}, when: { kind: 'itemAbsent' } } as const;
    expect(await cost(() => store.write(refused))).toEqual([0, 3]);
    const update = { kind: 'update', key: key('a'), set: { y: 2 } } as const;
    const check = { kind: 'check', key: key('absent'), when: { kind: 'itemAbsent' } } as const;
    expect(await cost(() => store.transact([update, check]))).toEqual([0, 8]);
    expect(await cost(() => store.transact([refused, { ...check, key: key('b') }]))).toEqual([0, 8]);
  });

  it('are reported with the operation and the table', async () => {
    const operation = async (run: () => Promise<unknown>) => {
      await cost(run);
      return units.map((unit) => `${unit.operation} ${unit.table}`);
    };
    const put = { kind: 'put', key: key('b'), item: {} } as const;
    const other = { kind: 'delete', key: key('b', 'control') } as const;
    const page = { table: 'objects', consistent: true } as const;
    expect(await operation(() => store.write(put))).toEqual(['PutItem health']);
    expect(await operation(() => store.write(other))).toEqual(['DeleteItem control']);
    expect(await operation(() => store.write({ ...put, kind: 'update' }))).toEqual(['UpdateItem health']);
    const both = ['TransactWriteItems health', 'TransactWriteItems control'];
    expect(await operation(() => store.transact([put, other]))).toEqual(both);
    expect(await operation(() => store.get(key('b'), { consistent: true }))).toEqual(['GetItem health']);
    const keys = [key('b'), key('b', 'objects')];
    const batch = ['BatchGetItem health', 'BatchGetItem objects'];
    expect(await operation(() => store.getMany(keys, { consistent: true }))).toEqual(batch);
    expect(await operation(() => store.query({ ...page, pk: 'p' }))).toEqual(['Query objects']);
    expect(await operation(() => store.scan({ ...page, segment: 0, segments: 1 }))).toEqual(['Scan objects']);
  });

  it('round each read up to 4 KB, a query once, and halve eventually consistent reads', async () => {
    await put(4_097);
    expect(await cost(() => store.get(key('a'), { consistent: true }))).toEqual([2, 0]);
    expect(await cost(() => store.get(key('a'), { consistent: false }))).toEqual([1, 0]);
    expect(await cost(() => store.getMany([key('a'), key('a'), key('absent')], { consistent: true }))).toEqual([3, 0]);
    for (let n = 0; n < 20; n += 1) {
      await store.write({ kind: 'put', key: { ...key(`n${n}`), pk: 'q' }, item: { x: 'x'.repeat(190) } });
    }
    const query = { table: 'health', pk: 'q', attributes: [] } as const;
    expect(await cost(() => store.query({ ...query, consistent: false }))).toEqual([0.5, 0]);
    expect(await cost(() => store.query({ ...query, pk: 'none', consistent: true }))).toEqual([1, 0]);
    const scan = { table: 'health', segment: 0, segments: 1, attributes: [] } as const;
    expect(await cost(() => store.scan({ ...scan, consistent: true }))).toEqual([2, 0]);
    expect(await cost(() => store.scan({ ...scan, consistent: false }))).toEqual([1, 0]);
    expect(await cost(() => store.scan({ ...scan, table: 'control', consistent: false }))).toEqual([0.5, 0]);
  });
});
