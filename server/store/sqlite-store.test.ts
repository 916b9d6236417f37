import { existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Item, type ItemKey, StoreFault } from '../../shared/store/item-store.ts';
import { ARRIVAL_KEY } from '../../shared/store/move-rows.ts';
import type { StoreChange } from '../../shared/store/writes/store-change.ts';
import { sqliteStoreForTest, type TestSqliteStore } from '../../test/support/sqlite-store.ts';
import { until } from '../../test/support/until.ts';
import { type CommittedChange, openSqliteStore, type SqliteStoreOptions, StoreOpenError } from './sqlite-store.ts';

const key = (sk: string, pk = 'p', table: ItemKey['table'] = 'objects'): ItemKey => ({ table, pk, sk });
const CONSISTENT = { consistent: true } as const;

let opened: TestSqliteStore | undefined;
const open = (options: Partial<SqliteStoreOptions> = {}) => {
  opened = sqliteStoreForTest(options);
  return opened.store;
};
afterEach(async () => {
  await opened?.remove();
  opened = undefined;
});

/** A disk with syncs that end when the test says so. */
function slowDisk() {
  const syncs: { end(): void; fail(): void }[] = [];
  const fdatasync = () =>
    new Promise<void>((resolve, reject) => {
      syncs.push({ end: resolve, fail: () => reject(new Error('EIO: i/o error, fdatasync')) });
    });
  /** The sync that is under way; waits until there is one. */
  const underWay = async () => {
    await until(() => syncs.length > 0, { withinMs: 30_000, everyMs: 1 });
    return syncs.shift()!;
  };
  return { fdatasync, underWay };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const turns = async (count: number): Promise<void> => {
  for (let index = 0; index < count; index += 1) await turn();
};
const put = (sk: string, item: Item = {}) => ({ kind: 'put', key: key(sk), item }) as const;

/** Whether a promise has settled within some turns of the event loop. */
async function isAnswered(answer: Promise<unknown>): Promise<boolean> {
  let answered = false;
  answer.then(
    () => {
      answered = true;
    },
    () => {
      answered = true;
    },
  );
  await turns(20);
  return answered;
}

describe('answers', () => {
  it('leave after the sync of their group', async () => {
    const { fdatasync, underWay } = slowDisk();
    const store = open({ fdatasync });
    const first = store.items.write(put('a'));
    const sync = await underWay();
    expect(await isAnswered(first)).toBe(false);
    sync.end();
    expect(await first).toEqual({ kind: 'written' });
  });

  it('of reads wait for what they saw of the group in flight, and for nothing else', async () => {
    const { fdatasync, underWay } = slowDisk();
    const store = open({ fdatasync });
    const before = store.items.write(put('old'));
    (await underWay()).end();
    await before;
    const write = store.items.write(put('a', { n: 1 }));
    const sync = await underWay();
    const waiting = [
      store.items.get(key('a'), CONSISTENT),
      store.items.get(key('a'), { consistent: false }),
      store.items.getMany([key('old'), key('a')], CONSISTENT),
      store.items.query({ table: 'objects', pk: 'p', ...CONSISTENT }),
      store.items.scan({ table: 'objects', segment: 0, segments: 1, ...CONSISTENT }),
    ];
    for (const read of waiting) expect(await isAnswered(read)).toBe(false);
    expect(await store.items.get(key('old'), CONSISTENT)).toBeDefined();
    expect(await store.items.query({ table: 'objects', pk: 'other', ...CONSISTENT })).toEqual({ items: [] });
    expect(await store.items.scan({ table: 'health', segment: 0, segments: 1, ...CONSISTENT })).toEqual({ items: [] });
    sync.end();
    await write;
    expect((await Promise.all(waiting))[0]).toMatchObject({ n: 1 });
  });

  it('are decided on the newest state, in the order of the requests', async () => {
    const { fdatasync, underWay } = slowDisk();
    const store = open({ fdatasync });
    const first = store.items.write({ ...put('a', { by: 'first' }), when: { kind: 'itemAbsent' } });
    const sync = await underWay();
    const second = store.items.write({ ...put('a', { by: 'second' }), when: { kind: 'itemAbsent' } });
    sync.end();
    expect(await first).toEqual({ kind: 'written' });
    expect(await second).toEqual({ kind: 'refused', current: { pk: 'p', sk: 'a', by: 'first' } });
  });

  it('of one turn share a sync', async () => {
    const store = open();
    // So few that the time of a turn, which another program may use up, is not looked at.
    await Promise.all(Array.from({ length: 8 }, (_, index) => store.items.write(put(`k${index}`))));
    expect(store.metrics().groups).toBe(1);
  });

  it('of large transactions are not all made in one turn', async () => {
    let nowMs = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      nowMs += 10;
      return nowMs;
    });
    try {
      const store = open({ synchronous: 'normal' });
      const puts = (of: number) => Array.from({ length: 100 }, (_, index) => put(`k${of}-${index}`));
      await Promise.all([1, 2, 3, 4].map((of) => store.items.transact(puts(of))));
      expect(store.metrics().groups).toBe(4);
    } finally {
      clock.mockRestore();
    }
  });

  it('leave without a sync when nothing changed', async () => {
    const { fdatasync, underWay } = slowDisk();
    const store = open({ fdatasync });
    const first = store.items.write(put('a', { n: 1 }));
    (await underWay()).end();
    await first;
    expect(await store.items.write(put('a', { n: 1 }))).toEqual({ kind: 'written' });
    expect((await store.items.write({ ...put('a'), when: { kind: 'itemAbsent' } })).kind).toBe('refused');
  });

  it('of one invalid request do not concern the others of its group', async () => {
    const store = open();
    const [invalid, valid] = await Promise.allSettled([
      store.items.write(put('a', { n: Number.NaN })),
      store.items.write(put('b')),
    ]);
    expect(invalid).toMatchObject({ status: 'rejected', reason: { code: 'rejected' } });
    expect(valid.status).toBe('fulfilled');
  });
});

describe('a sync that fails', () => {
  it('is repaired by a checkpoint, and the answers leave', async () => {
    const { fdatasync, underWay } = slowDisk();
    const store = open({ fdatasync });
    const write = store.items.write(put('a', { n: 1 }));
    (await underWay()).fail();
    expect(await write).toEqual({ kind: 'written' });
    expect(store.metrics().logBytes).toBe(0);
    expect(await store.items.get(key('a'), CONSISTENT)).toMatchObject({ n: 1 });
  });

  it('fails the group and hides it while the checkpoint fails too, and passes', async () => {
    const { fdatasync, underWay } = slowDisk();
    const committed: string[] = [];
    const store = open({ fdatasync, onCommit: (changes) => committed.push(...changes.map((change) => change.key.sk)) });
    const before = store.items.write(put('before'));
    (await underWay()).end();
    await before;
    // Another program that reads the log: it cannot be emptied.
    const reader = new DatabaseSync(opened!.file);
    reader.exec('BEGIN; SELECT * FROM objects');
    const write = store.items.write(put('a', { n: 1 }));
    (await underWay()).fail();
    await expect(write).rejects.toMatchObject({ name: 'StoreFault', code: 'unreachable', retryable: true });
    await expect(store.items.get(key('a'), CONSISTENT)).rejects.toBeInstanceOf(StoreFault);
    expect(await store.items.get(key('before'), CONSISTENT)).toBeDefined();
    await expect(store.items.write(put('b'))).rejects.toBeInstanceOf(StoreFault);
    expect(committed).toEqual(['before']);
    reader.exec('COMMIT');
    reader.close();
    const after = store.items.write(put('b'));
    (await underWay()).end();
    expect(await after).toEqual({ kind: 'written' });
    expect(await store.items.get(key('a'), CONSISTENT)).toMatchObject({ n: 1 });
    expect(committed).toEqual(['before', 'a', 'b']);
  });
});

describe('changes', () => {
  const toTwo = (change: StoreChange): readonly string[] => (change.key.table === 'objects' ? ['one', 'two'] : []);

  it('are published once durable, in order, with their rows', async () => {
    const published: CommittedChange[] = [];
    const { fdatasync, underWay } = slowDisk();
    const store = open({ fdatasync, consumersOf: toTwo, onCommit: (changes) => published.push(...changes) });
    const write = store.items.write(put('a', { n: 1 }));
    const sync = await underWay();
    await turns(20);
    expect(published).toEqual([]);
    sync.end();
    await write;
    const second = store.items.transact([
      { kind: 'delete', key: key('a') },
      { kind: 'put', key: key('h', 'p', 'health'), item: {} },
      { kind: 'delete', key: key('absent') },
    ]);
    (await underWay()).end();
    await second;
    expect(published.map(({ type, key: { sk }, cause, pending }) => [type, sk, cause, pending.length])).toEqual([
      ['INSERT', 'a', 'write', 2],
      ['REMOVE', 'a', 'write', 2],
      ['INSERT', 'h', 'write', 0],
    ]);
    expect(published[1]).toMatchObject({ oldImage: { pk: 'p', sk: 'a', n: 1 } });
  });

  it('wait for their consumers across a restart, until they are processed', async () => {
    const store = open({ consumersOf: toTwo });
    const image = { n: 1, bytes: Uint8Array.of(1, 2) };
    await store.items.write(put('a', image));
    await store.items.write(put('a', { n: 2 }));
    await store.close();
    const again = opened!.reopen({ consumersOf: toTwo });
    const [first, second] = again.pending('one', 10);
    expect(first).toMatchObject({
      consumer: 'one',
      change: { type: 'INSERT', newImage: { ...image, pk: 'p', sk: 'a' } },
    });
    expect(second).toMatchObject({
      change: { type: 'MODIFY', cause: 'write', oldImage: { n: 1 }, newImage: { n: 2 } },
    });
    expect(again.pending('one', 1)).toHaveLength(1);
    again.processed([first!.id]);
    await again.items.write(put('b'));
    expect(again.pending('one', 10).map(({ change }) => change.key.sk)).toEqual(['a', 'b']);
    expect(again.pending('two', 10)).toHaveLength(3);
    again.processed([second!.id]);
    await again.close();
    expect(
      opened!
        .reopen()
        .pending('one', 10)
        .map(({ change }) => change.key.sk),
    ).toEqual(['b']);
  });

  it('never use the number of a row twice', async () => {
    const ids: number[] = [];
    const onCommit = (changes: readonly CommittedChange[]) =>
      ids.push(...changes.flatMap(({ pending }) => pending.map(({ id }) => id)));
    const store = open({ consumersOf: toTwo, onCommit });
    for (let n = 0; n < 3; n += 1) {
      await store.items.write(put('a', { n }));
      store.processed(ids);
    }
    expect(new Set(ids).size).toBe(6);
  });

  it('of an invalid consumer undo the whole group', async () => {
    const store = open({
      consumersOf: ({ key: { sk } }) => {
        if (sk === 'bad') throw new TypeError('no such consumer');
        return ['one'];
      },
    });
    const outcomes = await Promise.allSettled([store.items.write(put('a')), store.items.write(put('bad'))]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await store.items.get(key('a'), CONSISTENT)).toBeUndefined();
    expect(store.pending('one', 10)).toEqual([]);
    expect(store.wrongCacheEntries()).toEqual([]);
    expect(await store.items.write(put('a'))).toEqual({ kind: 'written' });
  });
});

describe('time to live', () => {
  it('deletes what is due by the clock, as expired changes, and not what got more time', async () => {
    let nowMs = 100_000;
    const published: CommittedChange[] = [];
    const store = open({ clock: { nowMs: () => nowMs }, onCommit: (changes) => published.push(...changes) });
    for (const [sk, ttl] of Object.entries({ due: 100, later: 101, text: '1', none: undefined, longer: 99 })) {
      await store.items.write(put(sk, ttl === undefined ? {} : { ttl }));
    }
    published.length = 0;
    const sweep = store.items.write({ kind: 'update', key: key('longer'), set: { ttl: 500 } });
    expect(await store.sweepExpired()).toBe(1);
    await sweep;
    expect(published.filter(({ cause }) => cause === 'expired').map((change) => change.key.sk)).toEqual(['due']);
    nowMs = 101_000;
    expect(await store.sweepExpired()).toBe(1);
    expect(await store.sweepExpired()).toBe(0);
  });

  it('deletes a bounded number at once', async () => {
    const store = open();
    await Promise.all(Array.from({ length: 300 }, (_, index) => store.items.write(put(`k${index}`, { ttl: 1 }))));
    expect(await store.sweepExpired()).toBe(200);
    expect(await store.sweepExpired()).toBe(100);
  });
});

describe('reads of many items', () => {
  it('let other work run between their parts', async () => {
    const store = open({ synchronous: 'normal' });
    const item = { text: 'x'.repeat(300) };
    const keys = Array.from({ length: 2_000 }, (_, index) => key(`k${index}`));
    await Promise.all(keys.map((each) => store.items.write({ kind: 'put', key: each, item })));
    for (const read of [
      () => store.items.query({ table: 'objects', pk: 'p', ...CONSISTENT }),
      () => store.items.scan({ table: 'objects', segment: 0, segments: 1, ...CONSISTENT }),
      () => store.items.getMany(keys, CONSISTENT),
    ]) {
      let ran = 0;
      const count = () => {
        ran += 1;
        immediate = setImmediate(count);
      };
      let immediate = setImmediate(count);
      await read();
      clearImmediate(immediate);
      expect(ran).toBeGreaterThan(5);
    }
  });

  it('keep the cache within its limit and equal to the rows', async () => {
    const store = open({ synchronous: 'normal', cacheBytes: 20_000 });
    for (let n = 0; n < 400; n += 1) {
      const target = key(`k${(n * 7) % 90}`);
      if (n % 5 === 0) await store.items.write({ kind: 'delete', key: target });
      else await store.items.write({ kind: 'update', key: target, add: { n: 1 }, set: { text: 'x'.repeat(n) } });
      await store.items.get(key(`k${n % 90}`), CONSISTENT);
    }
    expect(store.metrics().cacheBytes).toBeLessThanOrEqual(20_000);
    expect(store.metrics().cacheHits).toBeGreaterThan(0);
    expect(store.wrongCacheEntries()).toEqual([]);
  });
});

it('keeps keys apart whatever characters they have', async () => {
  const store = open();
  const keys = [key('b\nc', 'a'), key('c', 'a\nb'), key('c', 'a b'), key('b c', 'a'), key('x\0y', 'a'), key('x', 'a')];
  await Promise.all(keys.map((each, n) => store.items.write({ kind: 'put', key: each, item: { n } })));
  expect((await store.items.getMany(keys, CONSISTENT)).map((item) => item?.['n'])).toEqual([0, 1, 2, 3, 4, 5]);
  const page = await store.items.query({ table: 'objects', pk: 'a', ...CONSISTENT });
  expect(page.items.map(({ sk }) => sk)).toEqual(['b\nc', 'b c', 'x', 'x\0y']);
});

describe('opening', () => {
  const refusal = (file: string): StoreOpenError => {
    try {
      openSqliteStore({ file, clock: { nowMs: Date.now }, synchronous: 'full' });
    } catch (error) {
      if (error instanceof StoreOpenError) return error;
      throw error;
    }
    throw new Error('the store was opened');
  };

  it('finds what was written, and leaves no log, lock or process id behind', async () => {
    const store = open();
    await store.items.write(put('a', { n: 1 }));
    await store.close();
    for (const suffix of ['-wal', '-shm', '.pid', '.new']) expect(existsSync(opened!.file + suffix)).toBe(false);
    expect(await opened!.reopen().items.get(key('a'), CONSISTENT)).toMatchObject({ n: 1 });
  });

  it('keeps the file and its log from other users', async () => {
    const store = open();
    await store.items.write(put('a'));
    const copy = join(dirname(opened!.file), 'copy.db');
    await store.backup(copy);
    for (const file of [opened!.file, `${opened!.file}-wal`, copy]) expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('is refused while a process has the file, with its id', () => {
    open();
    expect(refusal(opened!.file)).toMatchObject({ code: 'in-use', pid: process.pid });
  });

  it('is not prevented by what a killed process left', async () => {
    const store = open();
    await store.close();
    writeFileSync(`${opened!.file}.pid`, '1\n');
    writeFileSync(`${opened!.file}.new`, 'half of a file');
    expect(await opened!.reopen().items.get(key('a'), CONSISTENT)).toBeUndefined();
  });

  it('is refused without a directory', () => {
    open();
    expect(refusal(join(dirname(opened!.file), 'absent', 'nodekeeper.db'))).toMatchObject({ code: 'unreadable' });
  });

  it.each<[string, (file: string) => void, StoreOpenError['code']]>([
    ['an empty file', (file) => truncateSync(file), 'damaged'],
    ['no database', (file) => writeFileSync(file, 'text '.repeat(2_000)), 'damaged'],
    ['half of a file', (file) => truncateSync(file, 8_192), 'damaged'],
    [
      'a damaged page',
      (file) => {
        const bytes = readFileSync(file);
        bytes.fill(0x5a, 4_096, 8_192);
        writeFileSync(file, bytes);
      },
      'damaged',
    ],
    [
      'a log without its file',
      (file) => {
        rmSync(file);
        writeFileSync(`${file}-wal`, 'frames');
      },
      'damaged',
    ],
    [
      'a database of another program',
      (file) => {
        rmSync(file);
        const other = new DatabaseSync(file);
        other.exec('CREATE TABLE t (x)');
        other.close();
      },
      'foreign',
    ],
    [
      'a newer layout',
      (file) => {
        const newer = new DatabaseSync(file);
        newer.exec('PRAGMA user_version = 99');
        newer.close();
      },
      'newer-layout',
    ],
    [
      'a directory',
      (file) => {
        rmSync(file);
        mkdirSync(file);
      },
      'unreadable',
    ],
  ])('is refused for %s, and changes nothing', async (_, change, code) => {
    const store = open();
    await Promise.all(Array.from({ length: 40 }, (_, n) => store.items.write(put(`k${n}`, { text: 'x'.repeat(500) }))));
    await store.close();
    const { file } = opened!;
    change(file);
    const before = code === 'unreadable' || !existsSync(file) ? undefined : readFileSync(file);
    expect(refusal(file).code).toBe(code);
    if (before !== undefined) expect(readFileSync(file).equals(before)).toBe(true);
    if (!existsSync(file)) expect(existsSync(`${file}-wal`)).toBe(true);
    rmSync(dirname(file), { recursive: true });
    opened = undefined;
  });
});

describe('the file', () => {
  it('is copied while it is written to, as of one moment, sound and complete', async () => {
    const store = open({ synchronous: 'normal' });
    const pair = (n: number) =>
      store.items.transact([
        { kind: 'put', key: key(`a${n}`), item: { n } },
        { kind: 'put', key: key(`b${n}`), item: { n, bytes: Uint8Array.of(n % 256) } },
      ]);
    for (let n = 0; n < 100; n += 1) await pair(n);
    const copy = join(dirname(opened!.file), 'copy.db');
    const [rows] = await Promise.all([
      store.backup(copy),
      (async () => {
        for (let n = 100; n < 300; n += 1) await pair(n);
      })(),
    ]);
    // Both or none of each pair.
    expect(rows.objects % 2).toBe(0);
    expect(rows.objects).toBeGreaterThanOrEqual(200);
    const restored = openSqliteStore({ file: copy, clock: { nowMs: Date.now }, synchronous: 'full' });
    expect((await restored.check()).rows).toEqual(rows);
    expect(await restored.items.get(key('b99'), CONSISTENT)).toMatchObject({ n: 99, bytes: Uint8Array.of(99) });
    await restored.close();
    await expect(store.backup('/nowhere/copy.db')).rejects.toBeInstanceOf(StoreFault);
    expect(await store.check()).toMatchObject({ findings: [], layoutVersion: 1, rows: { objects: 600 } });
  });

  it('is checked down to the items', async () => {
    const store = open();
    await store.items.write(put('a'));
    const other = new DatabaseSync(opened!.file);
    other.exec(`UPDATE objects SET item = '{"cut'`);
    other.close();
    expect((await store.check()).findings).toEqual(['objects: the item p a cannot be decoded']);
    await store.close();
    const again = opened!.reopen();
    await expect(again.items.get(key('a'), CONSISTENT)).rejects.toMatchObject({ name: 'StoreFault', retryable: false });
    await expect(again.items.write({ kind: 'delete', key: key('a') })).rejects.toMatchObject({ retryable: false });
  });

  it('has a bounded log under load, and keeps everything', async () => {
    const store = open({ synchronous: 'normal' });
    const text = 'x'.repeat(20_000);
    let logBytesMax = 0;
    for (let round = 0; round < 60; round += 1) {
      await Promise.all(
        Array.from({ length: 60 }, (_, n) => store.items.write(put(`k${n}`, { round, text: `${round}${text}` }))),
      );
      logBytesMax = Math.max(logBytesMax, store.metrics().logBytes);
    }
    // 60 rounds append 72 MB or more.
    expect(store.metrics().checkpoints).toBeGreaterThan(2);
    expect(store.metrics().failedCheckpoints).toBe(0);
    expect(logBytesMax).toBeLessThan(40_000_000);
    const { items } = await store.items.query({ table: 'objects', pk: 'p', ...CONSISTENT, attributes: ['round'] });
    expect(items.every(({ round }) => round === 59)).toBe(true);
  }, 60_000);

  it('refuses writes after it is closed, and completes those before', async () => {
    const store = open();
    const write = store.items.write(put('a'));
    await store.close();
    expect(await write).toEqual({ kind: 'written' });
    await expect(store.items.write(put('b'))).rejects.toMatchObject({ code: 'unreachable' });
    opened!.reopen();
  });
});

describe('a fence', () => {
  const fence = { moveId: 'm', to: '/new', sinceMs: 7, isReady: false };
  const outcomeOf = (answer: Promise<unknown>): Promise<unknown> =>
    answer.then(
      () => 'written',
      (fault: unknown) => (fault instanceof StoreFault ? fault.code : fault),
    );

  it('refuses every write behind it, in one group as well, and none before it', async () => {
    opened = sqliteStoreForTest();
    const { store } = opened;
    const before = outcomeOf(store.items.write(put('before')));
    const set = store.setFence(fence, undefined);
    const after = [store.items.write(put('after')), store.items.transact([put('after')])].map(outcomeOf);
    await set;
    expect([await before, ...(await Promise.all(after))]).toEqual(['written', 'unreachable', 'unreachable']);
    expect(store.fence()).toEqual(fence);
    expect(await store.items.get(key('before'), { consistent: true })).toBeDefined();
    expect(await store.items.get(key('after'), { consistent: true })).toBeUndefined();
  });

  it('outlives the process, and is lifted', async () => {
    opened = sqliteStoreForTest();
    await opened.store.setFence(fence, undefined);
    await opened.store.close();
    const store = opened.reopen();
    expect(await outcomeOf(store.items.write(put('k')))).toBe('unreachable');
    expect(await store.setFence(undefined, { ...fence, moveId: 'other' })).toBe(false);
    expect(await store.setFence(undefined, { ...fence, isReady: true })).toBe(false);
    expect(await store.setFence(undefined, undefined)).toBe(false);
    expect(store.fence()).toEqual(fence);
    expect(await store.setFence(undefined, fence)).toBe(true);
    expect(store.fence()).toBeUndefined();
    expect(await outcomeOf(store.items.write(put('k')))).toBe('written');
  });

  it('is not passed by the deletion of expired items', async () => {
    opened = sqliteStoreForTest();
    const { store } = opened;
    await store.items.write(put('k', { ttl: 7 }));
    const set = store.setFence(fence, undefined);
    expect(await store.sweepExpired()).toBe(0);
    await set;
    expect(await store.sweepExpired()).toBe(0);
    expect(await store.items.get(key('k'), CONSISTENT)).toBeDefined();
    await store.setFence(undefined, fence);
    expect(await store.sweepExpired()).toBe(1);
  });

  it('is of a cluster only: not of a copy that was never opened', async () => {
    opened = sqliteStoreForTest();
    const { store } = opened;
    const arrival = (phase: string) =>
      store.items.write({ kind: 'put', key: ARRIVAL_KEY, item: { moveId: 'm0', phase } });
    for (const phase of ['copying', 'ready', 'abandoned']) {
      await arrival(phase);
      expect(await outcomeOf(store.setFence(fence, undefined)), phase).toBe('rejected');
      expect(store.fence()).toBeUndefined();
    }
    await arrival('open');
    expect(await store.setFence(fence, undefined)).toBe(true);
  });

  it('that the disk refused is none', async () => {
    const disk = slowDisk();
    opened = sqliteStoreForTest({ fdatasync: disk.fdatasync });
    const { store } = opened;
    const set = outcomeOf(store.setFence({ ...fence, to: 'x'.repeat(500_000) }, undefined));
    expect(await set).toBe('too-large');
    expect(store.fence()).toBeUndefined();
    const write = outcomeOf(store.items.write(put('k')));
    (await disk.underWay()).end();
    expect(await write).toBe('written');
  });

  it('is as its row says when the disk failed behind its commit', async () => {
    const disk = slowDisk();
    opened = sqliteStoreForTest({ fdatasync: disk.fdatasync });
    const { store } = opened;
    // Another program that reads the log: the checkpoint after the sync fails as well.
    const reader = new DatabaseSync(opened.file);
    reader.exec('BEGIN; SELECT * FROM objects');
    const set = outcomeOf(store.setFence(fence, undefined));
    (await disk.underWay()).fail();
    expect(await set).toBe('unreachable');
    expect(store.fence()).toEqual(fence);
    reader.close();
    await expect(store.items.write(put('k'))).rejects.toThrow('being moved');
    expect(await store.setFence({ ...fence, moveId: 'other' }, undefined)).toBe(false);
    expect(store.fence()).toEqual(fence);
    await store.close();
    expect(opened.reopen().fence()).toEqual(fence);
  });
});
