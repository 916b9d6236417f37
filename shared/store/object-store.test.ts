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

const CLOCK = { nowMs: () => T0 };
const ONE_SHARD = { clock: CLOCK, shardsOf: () => 1 };

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
    const store = objectStore({ ...ONE_SHARD, items });
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
  function world() {
    let nowMs = T0;
    const items = memoryItemStore();
    const store = objectStore({ items, clock: { nowMs: () => nowMs }, shardsOf: () => 1 });
    const commit = async (write: object) => {
      const outcome = await store.commit({ writes: [write as never] });
      if (outcome.kind !== 'committed') throw new Error(outcome.kind);
      return outcome.objects[0]!;
    };
    const pass = (milliseconds: number) => {
      nowMs += milliseconds;
    };
    return { items, store, commit, pass };
  }

  it('have the time of their binding, which no later write changes', async () => {
    const { store, commit, pass } = world();
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
    expect(await store.listBound('n1')).toMatchObject([{ pod: { metadata: { name: 'p' } }, boundAtMs: T0 + 1_000 }]);
  });

  it('have the time of their version where the pointer belongs to an earlier pod of the name', async () => {
    const { items, store, commit, pass } = world();
    await commit({ kind: 'create', ref: ref('p'), object: pod('p', 'n1') });
    pass(5_000);
    const key = { table: 'objects', pk: 'n#n1', sk: 'a/p' } as const;
    await items.write({ kind: 'update', key, set: { u: 'another' } });
    const [found] = await store.listBound('n1');
    expect(found?.boundAtMs).toBe(T0);
    await items.write({ kind: 'update', key, set: { u: 'uid-p', b: 7 } });
    expect((await store.listBound('n1'))[0]?.boundAtMs).toBe(7);
  });

  it('are those that exist and are bound to it', async () => {
    const { items, store, commit } = world();
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
    const { store, commit } = world();
    const bound = await commit({ kind: 'create', ref: ref('p'), object: pod('p', 'n1') });
    const moved = { kind: 'update', ref: ref('p'), object: { ...bound, spec: { nodeName: 'n2' } }, previous: bound };
    await expect(commit(moved)).rejects.toThrow('a bound pod does not change its node');
    await commit({ kind: 'update', ref: ref('p'), object: { ...bound, spec: { nodeName: '' } }, previous: bound });
    expect(await store.listByNode('n1')).toEqual([]);
  });
});

it('an object needs the version that was read to be changed', async () => {
  const store = objectStore({ ...ONE_SHARD, items: memoryItemStore() });
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
    const store = objectStore({ ...ONE_SHARD, items: memoryItemStore() });
    expect((await store.commit({ writes: [{ kind: 'create', ref, object: sized(units) }], byClient })).kind).toBe(kind);
  });

  it('that controllers made larger than a client may may be kept, not grown, and deleted by a client', async () => {
    const store = objectStore({ ...ONE_SHARD, items: memoryItemStore() });
    const created = await store.commit({ writes: [{ kind: 'create', ref, object: sized(110_000) }] });
    if (created.kind !== 'committed') throw new Error(created.kind);
    const previous = created.objects[0]!;
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
});
