/** Each read of several pages has a bound: the last page within it is read, and one more is a fault or an answer. */
import { describe, expect, it } from 'vitest';
import { readAll } from './bounded-reads.ts';
import { controlPages } from './control-pages.ts';
import type { Item, ItemStore, QueryRequest } from './item-store.ts';
import { memoryItemStore } from './memory/item-store.ts';
import { mergePages } from './merge-pages.ts';
import { objectStore } from './object-store.ts';
import { ownedRefs } from './owner-index.ts';
import { readShardChanges, readShardCursors } from './shard-changes.ts';

/** Answers a query with this many pages. Each has one item. The key of an item counts the pages. */
function pagesOf(count: number, item: Item = {}) {
  const requests: QueryRequest[] = [];
  const query: ItemStore['query'] = async (request) => {
    requests.push(request);
    const page = Number(request.after?.split('-').at(-1) ?? 0) + 1;
    const sk = `things:p-${page}`;
    return { items: [{ pk: request.pk, sk, ...item }], ...(page < count ? { next: sk } : {}) };
  };
  return { requests, query };
}

async function keysOfControl(count: number): Promise<unknown[]> {
  const keys: unknown[] = [];
  for await (const page of controlPages(pagesOf(count), 'fleet', { consistent: true, tooMany: 'too many nodes' })) {
    keys.push(...page.map(({ sk }) => sk));
  }
  return keys;
}

describe('a partition of the control table', () => {
  it.each([1, 2, 64])('of %i pages is read', async (count) => {
    const keys = await keysOfControl(count);
    expect(keys).toEqual(Array.from({ length: count }, (_, index) => `things:p-${index + 1}`));
  });

  it('of 65 pages is a fault of the caller', async () => {
    await expect(keysOfControl(65)).rejects.toMatchObject({
      code: 'too-large',
      message: 'too many nodes',
      retryable: false,
    });
  });

  it('is read as consistently as the caller needs', async () => {
    for (const consistent of [true, false]) {
      const pages = pagesOf(2);
      for await (const _ of controlPages(pages, 'fleet', { consistent, tooMany: '' }));
      expect(pages.requests).toEqual([
        { table: 'control', pk: 'fleet', consistent },
        { table: 'control', pk: 'fleet', consistent, after: 'things:p-1' },
      ]);
    }
  });
});

describe('the objects of an owner', () => {
  it.each([1, 8])('are read from %i pages', async (count) => {
    const pages = pagesOf(count);
    const refs = await ownedRefs(pages, 'u', 'things');
    expect(refs).toHaveLength(count);
    expect(refs[0]).toEqual({ resource: 'things', namespace: '', name: 'p-1' });
    expect(pages.requests[0]).toEqual({ table: 'objects', pk: 'w#u', consistent: true, beginsWith: 'things:' });
  });

  it('of nine pages are a fault', async () => {
    await expect(ownedRefs(pagesOf(9), 'u')).rejects.toMatchObject({ code: 'too-large', retryable: false });
  });

  it('are found by each owner that a reference names, of one resource or of all, and only as long as it does', async () => {
    const items = memoryItemStore();
    const { commit } = objectStore({ items, clock: { nowMs: () => 1_000 }, shardsOf: () => 1 });
    const ownedBy = (...uids: string[]) => ({
      metadata: { name: 'a', ownerReferences: uids.map((uid) => ({ uid, apiVersion: 'v1', kind: 'K', name: 'n' })) },
    });
    const put = async (resource: string, namespace: string, object: object, previous?: object) => {
      const ref = { resource, namespace, name: 'a' };
      const write = previous === undefined ? { kind: 'create' } : { kind: 'update', previous };
      const outcome = await commit({ writes: [{ ...write, ref, object } as never] });
      if (outcome.kind !== 'committed') throw new Error(outcome.kind);
      return outcome.objects[0]!;
    };
    const pod = await put('pods', 'default', ownedBy('u', 'v', ''));
    await put('widgets', '', ownedBy('u', 'u'));
    const podRef = { resource: 'pods', namespace: 'default', name: 'a' };
    const widgetRef = { resource: 'widgets', namespace: '', name: 'a' };
    expect(await ownedRefs(items, 'u')).toEqual([podRef, widgetRef]);
    expect(await ownedRefs(items, 'u', 'pods')).toEqual([podRef]);
    expect(await ownedRefs(items, 'v')).toEqual([podRef]);
    expect(await ownedRefs(items, '')).toEqual([]);
    const moved = await put(
      'pods',
      'default',
      { ...pod, metadata: { ...pod.metadata, ...ownedBy('v', 'w').metadata } },
      pod,
    );
    expect(await ownedRefs(items, 'u')).toEqual([widgetRef]);
    expect(await ownedRefs(items, 'v')).toEqual([podRef]);
    expect(await ownedRefs(items, 'w')).toEqual([podRef]);
    expect((await commit({ writes: [{ kind: 'delete', ref: podRef, previous: moved }] })).kind).toBe('committed');
    expect([await ownedRefs(items, 'v'), await ownedRefs(items, 'w')]).toEqual([[], []]);
  });
});

describe('the pods of a node', () => {
  const read = async (count: number) => {
    const pages = pagesOf(count);
    const getMany = async (keys: readonly unknown[]) => keys.map(() => undefined);
    const items = { ...memoryItemStore(), query: pages.query, getMany };
    const store = objectStore({ items, clock: { nowMs: () => 0 }, shardsOf: () => 1 });
    return { pods: await store.listByNode('n1'), requests: pages.requests };
  };

  it('are read from up to eight pages', async () => {
    const { pods, requests } = await read(8);
    expect([pods, requests.length]).toEqual([[], 8]);
    expect(requests[0]).toEqual({ table: 'objects', pk: 'n#n1', consistent: true });
    await expect(read(9)).rejects.toMatchObject({ code: 'too-large', retryable: false });
  });
});

describe('a read of many partitions', () => {
  it('has 32 requests at a time, reads each part once, and rejects with the first fault', async () => {
    const parts = Array.from({ length: 100 }, (_, index) => index);
    const read: number[] = [];
    let open = 0;
    let most = 0;
    await readAll(parts, async (part) => {
      open += 1;
      most = Math.max(most, open);
      await new Promise<void>((resolve) => setImmediate(resolve));
      open -= 1;
      read.push(part);
    });
    expect(most).toBe(32);
    expect(read.toSorted((one, other) => one - other)).toEqual(parts);
    await readAll([], () => Promise.reject(new Error('no part')));
    await expect(readAll([1], () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  });

  it.each([
    [undefined, 4, undefined],
    [4, 4, 4],
    [100, 4, 40],
    [16, 1, 16],
    [1_000, 32, 48],
  ])('of %s items from %i partitions asks each one for %s', async (limit, partitions, asked) => {
    const limits: unknown[] = [];
    const reader = async (page: { readonly limit?: number; readonly after?: string }) => {
      limits.push(page);
      return { items: [] };
    };
    const request = limit === undefined ? {} : { limit };
    expect(await mergePages(Array(partitions).fill(reader), { ...request, after: 'x' })).toEqual({ items: [] });
    const expected = { after: 'x', ...(asked === undefined ? {} : { limit: asked }) };
    expect(limits).toEqual(Array(partitions).fill(expected));
  });

  it('is a fault beyond two thousand pages', async () => {
    const read = async (count: number) => {
      let pages = 0;
      const reader = async () => {
        pages += 1;
        return { items: [], ...(pages < count ? { next: 'x' } : {}) };
      };
      return mergePages([reader], {});
    };
    expect(await read(2_000)).toEqual({ items: [] });
    await expect(read(2_001)).rejects.toMatchObject({ code: 'too-large', retryable: false });
  });
});

describe('changes of a resource by shards', () => {
  const START_MS = Date.UTC(2026, 0, 1);
  const HOUR_MS = 3_600_000;

  /** Two shards with objects. */
  async function world() {
    const items = memoryItemStore();
    let nowMs = START_MS;
    const options = { items, clock: { nowMs: () => nowMs }, shardsOf: () => 2 };
    const { commit } = objectStore(options);
    const create = async (name: string) => {
      const ref = { resource: 'things', namespace: '', name };
      const outcome = await commit({ writes: [{ kind: 'create', ref, object: { metadata: { name } } }] });
      if (outcome.kind !== 'committed') throw new Error(outcome.kind);
      return Number(outcome.objects[0]!.metadata.resourceVersion);
    };
    const pass = (milliseconds: number) => {
      nowMs += milliseconds;
    };
    return { items, options, create, pass };
  }

  it('are those after the cursors, each once, and a quiet resource costs its heads only', async () => {
    const { items, options, create, pass } = await world();
    expect(await readShardCursors(options, 'things')).toEqual({ versions: [0, 0], readAtMs: START_MS });
    await create('before');
    pass(10);
    const cursors = await readShardCursors(options, 'things');
    expect(cursors.readAtMs).toBe(START_MS + 10);
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const versions: number[] = [];
    for (const name of names) versions.push(await create(name));
    const first = await readShardChanges(options, 'things', cursors);
    if (first.kind !== 'changes') throw new Error(first.kind);
    expect(first.changes.map(({ object }) => object.metadata.name).toSorted()).toEqual(names);
    expect(first.cursors.versions.toSorted()).toEqual(
      [0, 1].map((shard) => Math.max(...versions.filter((version) => version % 2 === shard))).toSorted(),
    );
    const quiet: ItemStore = { ...items, query: () => Promise.reject(new Error('a log was read')) };
    expect(await readShardChanges({ ...options, items: quiet }, 'things', first.cursors)).toEqual({
      kind: 'changes',
      changes: [],
      cursors: first.cursors,
    });
  });

  it('may have expired an hour after the cursors were read, if there are any', async () => {
    const { options, create, pass } = await world();
    const cursors = await readShardCursors(options, 'things');
    pass(HOUR_MS + 1);
    expect((await readShardChanges(options, 'things', cursors)).kind).toBe('changes');
    await create('a');
    expect(await readShardChanges(options, 'things', cursors)).toEqual({ kind: 'expired' });
    pass(-1);
    expect((await readShardChanges(options, 'things', cursors)).kind).toBe('changes');
  });

  it.each([
    [4, 'changes'],
    [5, 'expired'],
  ])('in %i pages of the log of a shard are answered with %s', async (pages, kind) => {
    const { items, options, create } = await world();
    const cursors = await readShardCursors(options, 'things');
    let made = 0;
    for (let index = 0; made < pages; index += 1) if ((await create(`n${index}`)) % 2 === 0) made += 1;
    const small: ItemStore = { ...items, query: (request) => items.query({ ...request, limit: 1 }) };
    // One of the shards may have fewer.
    const only = { ...options, items: small };
    const now = await readShardCursors(options, 'things');
    const after = { ...cursors, versions: [0, now.versions[1]!] };
    const outcome = await readShardChanges(only, 'things', after);
    expect(outcome.kind).toBe(kind);
    if (outcome.kind === 'changes') expect(outcome.changes).toHaveLength(pages);
  });

  it('are asked for by heads that are read as consistently as the caller needs', async () => {
    const { items, options } = await world();
    const asked: boolean[] = [];
    const getMany: ItemStore['getMany'] = (keys, read) => {
      asked.push(read.consistent);
      return items.getMany(keys, read);
    };
    const watched = { ...options, items: { ...items, getMany } };
    await readShardCursors(watched, 'things');
    await readShardCursors(watched, 'things', { consistent: false });
    expect(asked).toEqual([true, false]);
  });
});
