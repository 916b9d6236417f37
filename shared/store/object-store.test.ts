import { describe, expect, it } from 'vitest';
import { memoryObjects, START_MS } from '../../test/support/memory-objects.ts';
import type { KubeObject } from '../kinds/types.ts';
import { utf8Bytes } from '../text.ts';
import type { ItemStore, TransactOutcome, TransactWrite } from './item-store.ts';
import { memoryItemStore } from './memory/item-store.ts';
import { logEntries } from './object-record.ts';
import { type CommitOutcome, objectStore } from './object-store.ts';

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
    ...memoryObjects({ items }).options,
    ...options,
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
    const ahead = (START_MS + 60_000) * 1_000;
    const { outcome, pausesMs } = await commitOne([headRefused(ahead), headRefused(ahead + 7)]);
    expect(pausesMs).toEqual([15]);
    expect(outcome).toMatchObject({
      kind: 'committed',
      objects: [{ metadata: { name: 'a', resourceVersion: String(ahead + 8) } }],
    });
  });

  it('commits after the refusal of a head that is absent by then', async () => {
    const { outcome } = await commitOne([headRefused()]);
    const resourceVersion = String(START_MS * 1_000 + 1);
    expect(outcome).toMatchObject({ kind: 'committed', objects: [{ metadata: { name: 'a', resourceVersion } }] });
  });
});

describe('commits of one process', () => {
  it('on one head follow each other, also after one that failed; those on other heads do not wait', async () => {
    const memory = memoryItemStore();
    const begun: string[] = [];
    const release = new Map<string, (fails: boolean) => void>();
    const items: ItemStore = {
      ...memory,
      async transact(writes) {
        const name = writes[0]!.key.sk;
        begun.push(name);
        const fails = await new Promise<boolean>((resolve) => release.set(name, resolve));
        if (fails) throw new Error(`${name} failed`);
        return memory.transact(writes);
      },
    };
    const { store } = memoryObjects({ items });
    const create = (resource: string, name: string) =>
      store.commit({
        writes: [{ kind: 'create', ref: { resource, namespace: '', name }, object: { metadata: { name } } }],
      });
    const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
    const first = create('things', 'a');
    const second = create('things', 'b');
    const other = create('others', 'c');
    await settled();
    expect(begun).toEqual(['a', 'c']);
    release.get('a')!(true);
    await expect(first).rejects.toThrow('a failed');
    await settled();
    expect(begun).toEqual(['a', 'c', 'b']);
    release.get('b')!(false);
    release.get('c')!(false);
    expect([(await second).kind, (await other).kind]).toEqual(['committed', 'committed']);
  });
});

describe('the pods of a node', () => {
  const ref = (name: string) => ({ resource: 'pods', namespace: 'a', name });
  const pod = (name: string, nodeName: string | undefined, uid = `uid-${name}`) => ({
    metadata: { name, namespace: 'a', uid },
    spec: nodeName === undefined ? {} : { nodeName },
  });
  it('have the time of their binding, which no later write changes', async () => {
    const { store, commit, pass } = memoryObjects();
    const created = await commit({ kind: 'create', ref: ref('p'), object: pod('p', undefined) });
    pass(1_000);
    const bound = await commit({
      kind: 'update',
      ref: ref('p'),
      object: { ...created, spec: { nodeName: 'n1' } },
      previous: created,
    });
    pass(1_000);
    await commit({
      kind: 'update',
      ref: ref('p'),
      object: { ...bound, status: { phase: 'Running' } },
      previous: bound,
    });
    expect(await store.listBound('n1')).toMatchObject([
      { pod: { metadata: { name: 'p' } }, boundAtMs: START_MS + 1_000 },
    ]);
  });

  it('have the time of their version where the pointer belongs to an earlier pod of the name', async () => {
    const { items, store, commit, pass } = memoryObjects();
    await commit({ kind: 'create', ref: ref('p'), object: pod('p', 'n1') });
    pass(5_000);
    const key = { table: 'objects', pk: 'n#n1', sk: 'a/p' } as const;
    await items.write({ kind: 'update', key, set: { u: 'another', b: 7 } });
    expect((await store.listBound('n1'))[0]?.boundAtMs).toBe(START_MS);
    await items.write({ kind: 'update', key, set: { u: 'uid-p' } });
    expect((await store.listBound('n1'))[0]?.boundAtMs).toBe(7);
  });

  it('are those that exist and are bound to it', async () => {
    const { items, store, commit } = memoryObjects();
    await commit({ kind: 'create', ref: ref('p'), object: pod('p', 'n2') });
    for (const name of ['p', 'gone']) {
      await items.write({
        kind: 'put',
        key: { table: 'objects', pk: 'n#n1', sk: `a/${name}` },
        item: { u: 'u', b: 1 },
      });
    }
    expect(await store.listBound('n1')).toEqual([]);
    expect(await store.listByNode('n2')).toHaveLength(1);
  });

  it('stay on their node: a write that moves one is a mistake of its caller', async () => {
    const { store, commit } = memoryObjects();
    const bound = await commit({ kind: 'create', ref: ref('p'), object: pod('p', 'n1') });
    const to = (nodeName: string) =>
      commit({ kind: 'update', ref: ref('p'), object: { ...bound, spec: { nodeName } }, previous: bound });
    await expect(to('n2')).rejects.toThrow('a bound pod does not change its node');
    await to('');
    expect(await store.listByNode('n1')).toEqual([]);
  });
});

it('a name that no object can have is not found, beside those that are', async () => {
  const { store, create } = memoryObjects();
  await create('a');
  const refOf = (name: string) => ({ resource: 'things', namespace: '', name });
  const [long, longest] = [refOf('x'.repeat(1_025)), refOf('x'.repeat(1_024))];
  expect(await store.get(long)).toBeUndefined();
  const found = await store.getMany([long, refOf('a'), longest, refOf('b'), refOf('a')]);
  expect(found.map((object) => object?.metadata.name)).toEqual([undefined, 'a', undefined, undefined, 'a']);
});

it('an object needs the version that was read to be changed', async () => {
  const { store } = memoryObjects();
  for (const resourceVersion of [undefined, '', '0', '-1', 'x', '1.5']) {
    const previous = { metadata: { name: 'a', ...(resourceVersion === undefined ? {} : { resourceVersion }) } };
    const ref = { resource: 'things', namespace: '', name: 'a' };
    await expect(store.commit({ writes: [{ kind: 'delete', ref, previous }] })).rejects.toThrow(
      'the object has no resourceVersion',
    );
  }
});

describe('the size of an object', () => {
  /** JSON of this many UTF-16 units. */
  const sized = (units: number, name = 'a') => {
    const bare = JSON.stringify({ spec: { text: '' }, metadata: { name } }).length;
    return { spec: { text: 'x'.repeat(units - bare) }, metadata: { name } };
  };
  const ref = { resource: 'things', namespace: '', name: 'a' };
  it.each([
    [true, 100_000, 'committed'],
    [true, 100_001, 'tooLarge'],
    [false, 120_000, 'committed'],
    [false, 120_001, 'tooLarge'],
  ])('by a client %s may be %i units: %s', async (byClient, units, kind) => {
    const { store } = memoryObjects();
    expect((await store.commit({ writes: [{ kind: 'create', ref, object: sized(units) }], byClient })).kind).toBe(kind);
  });

  it('is listed with it, and no list counts it again', async () => {
    const { store, commit } = memoryObjects();
    for (const [name, units] of [
      ['a', 500],
      ['b', 30_000],
    ] as const) {
      await commit({ kind: 'create', ref: { ...ref, name }, object: sized(units, name) });
    }
    expect((await store.list({ resource: 'things' })).lengths).toEqual([500, 30_000]);
  });

  it('that exceeds the limit of clients may be kept and deleted by them, but not grown', async () => {
    const { store, commit } = memoryObjects();
    const previous = await commit({ kind: 'create', ref, object: sized(110_000) });
    const update = async (object: object) =>
      (await store.commit({ writes: [{ kind: 'update', ref, object: object as never, previous }], byClient: true }))
        .kind;
    expect(await update({ ...previous, ...sized(110_001) })).toBe('tooLarge');
    expect(await update({ ...previous, ...sized(110_000) })).toBe('committed');
    const again = (await store.get(ref))!;
    expect((await store.commit({ writes: [{ kind: 'delete', ref, previous: again }], byClient: true })).kind).toBe(
      'committed',
    );
  });

  it('that was marked for deletion before may not grow either', async () => {
    const { store, commit } = memoryObjects();
    const previous = await commit({ kind: 'create', ref, object: sized(110_000) });
    const mark = async (before: KubeObject, deletionTimestamp: string) => {
      const object = { ...before, metadata: { ...before.metadata, deletionTimestamp } };
      return store.commit({ writes: [{ kind: 'update', ref, object, previous: before }], byClient: true });
    };
    const marked = await mark(previous, '2026-01-01T00:00:00Z');
    if (marked.kind !== 'committed') throw new Error(marked.kind);
    expect((await mark(marked.objects[0]!, '2026-01-01T00:00:00.5Z')).kind).toBe('tooLarge');
  });

  it('and what selectors saw before fit an item to the byte', async () => {
    const text = '节'.repeat(118_000);
    const update = async (valueLength: number) => {
      const { store, commit } = memoryObjects();
      const labels = { x: 'v'.repeat(valueLength) };
      const previous = await commit({ kind: 'create', ref, object: { metadata: { name: 'a', labels } } });
      const object = { ...previous, metadata: { name: 'a' }, spec: { text } };
      return (await store.commit({ writes: [{ kind: 'update', ref, object, previous }] })).kind;
    };
    const own = utf8Bytes(JSON.stringify({ metadata: { name: 'a' }, spec: { text } }));
    const before = JSON.stringify({ labels: { x: '' }, fields: {} }).length;
    const most = 400 * 1_024 - 2_048 - own - before;
    expect(await update(most)).toBe('committed');
    expect(await update(most + 1)).toBe('tooLarge');
  });

  it('and of all that is written with it fits a transaction to the byte', async () => {
    const { store } = memoryObjects();
    const key = (n: number) => ({ table: 'control', pk: 'p', sk: `s${n}` }) as const;
    const half = 'x'.repeat(199_999);
    const extra: TransactWrite[] = Array.from({ length: 8 }, (_, n) => ({
      kind: 'put',
      key: key(n),
      item: { a: half, b: half },
    }));
    extra.push({ kind: 'update', key: key(8), set: { a: half }, setIfAbsent: { b: half } });
    extra.push({ kind: 'put', key: key(9), item: { a: half, b: half } });
    // A KB of each write, two of each of the object's items, and twice its text.
    const units = (4 * 1_024 * 1_024 - 11 * 1_024 - 2 * 2_048 - 10 * 400_000) / 2;
    const commit = async (object: KubeObject) =>
      (await store.commit({ writes: [{ kind: 'create', ref, object }], extra })).kind;
    expect(await commit(sized(units + 1))).toBe('overfull');
    expect(await commit(sized(units))).toBe('committed');
  });

  it.each([
    [50_000, [['a', 'b'], ['c']]],
    [50_001, [['a'], ['b', 'c']]],
  ])('of %i units, between two others of its shard, is in the items %j of the log', async (units, expected) => {
    const { store, items } = memoryObjects();
    const create = (name: string, of: number) =>
      ({ kind: 'create', ref: { ...ref, name }, object: sized(of, name) }) as const;
    await store.commit({ writes: [create('a', 50_000), create('b', units), create('c', 49_999)] });
    const log = await items.query({ table: 'objects', pk: 'l#things#00', consistent: true });
    const names = log.items.map((item) => logEntries('things', item).map((entry) => entry.change().ref.name));
    expect(names).toEqual(expected);
  });
});
