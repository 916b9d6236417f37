/** Each read of several pages has a bound: the last page within it is read, and one more is a fault or an answer. */
import { describe, expect, it } from 'vitest';
import { memoryObjects } from '../../test/support/memory-objects.ts';
import { controlPages, type Item, type ItemStore, type QueryRequest } from './item-store.ts';
import { memoryItemStore } from './memory/item-store.ts';
import { mergePages, readAll } from './merge-pages.ts';
import { ownedRefs } from './owners.ts';

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
});

describe('the pods of a node', () => {
  const read = async (count: number) => {
    const pages = pagesOf(count);
    const getMany = async (keys: readonly unknown[]) => keys.map(() => undefined);
    const { store } = memoryObjects({ items: { ...memoryItemStore(), query: pages.query, getMany } });
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
