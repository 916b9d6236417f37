import { describe, expect, it } from 'vitest';
import { mergePages, type PageReader, readAll } from './merge-pages.ts';

interface Page {
  readonly after?: string;
  readonly limit?: number;
}

/** A partition of these keys, in pages of at most `pageSize` items. */
function partition(keys: readonly string[], pageSize = 100) {
  const pages: Page[] = [];
  const read: PageReader = async (page) => {
    pages.push(page);
    const left = keys.filter((key) => page.after === undefined || key > page.after);
    const items = left.slice(0, Math.min(pageSize, page.limit ?? pageSize)).map((sk) => ({ pk: 'p', sk }));
    return { items, ...(items.length < left.length ? { next: items.at(-1)!.sk } : {}) };
  };
  return { read, pages };
}
const keysOf = ({ items }: Awaited<ReturnType<typeof mergePages>>) => items.map(({ sk }) => sk).join('');

describe('pages of several partitions', () => {
  it('are one list in the order of the keys', async () => {
    const parts = [partition([...'adg'], 2), partition([]), partition([...'bcefh'], 1)];
    const merged = await mergePages(
      parts.map(({ read }) => read),
      {},
    );
    expect(keysOf(merged)).toBe('abcdefgh');
    expect(merged).not.toHaveProperty('next');
    expect(parts.map(({ pages }) => pages.length)).toEqual([2, 1, 5]);
    expect(parts[0]!.pages[0]).toEqual({});
  });

  it('end at the limit, with the key to continue after only when more follows', async () => {
    const read = (request: { after?: string; limit?: number }) =>
      mergePages([partition([...'ace']).read, partition([...'bd']).read], request);
    const first = await read({ limit: 3 });
    expect([keysOf(first), first.next]).toEqual(['abc', 'c']);
    const rest = await read({ limit: 3, after: 'c' });
    expect([keysOf(rest), rest.next]).toEqual(['de', undefined]);
    const exact = await read({ limit: 5 });
    expect([keysOf(exact), exact.next]).toEqual(['abcde', undefined]);
  });

  it('read of each partition its share and a reserve, at most the limit', async () => {
    const limits = async (limit: number, count: number) => {
      const parts = Array.from({ length: count }, () => partition([]));
      await mergePages(
        parts.map(({ read }) => read),
        { limit },
      );
      return new Set(parts.map(({ pages }) => pages[0]!.limit));
    };
    expect(await limits(500, 16)).toEqual(new Set([48]));
    expect(await limits(5, 4)).toEqual(new Set([5]));
  });

  it('continue after an empty page', async () => {
    const answers = [{ items: [], next: 'a' }, { items: [{ pk: 'p', sk: 'b' }] }];
    expect(keysOf(await mergePages([async () => answers.shift()!], {}))).toBe('b');
  });

  it('are at most 2,000 in one list', async () => {
    let pages = 0;
    const endless: PageReader = async () => {
      pages += 1;
      return { items: [], next: 'a' };
    };
    await expect(mergePages([endless], {})).rejects.toMatchObject({ code: 'too-large', retryable: false });
    expect(pages).toBe(2_000);
  });
});

it.each([
  [0, 0],
  [5, 5],
  [32, 32],
  [100, 32],
])('of %i parts, %i are read at the same time, and each once', async (total, atOnce) => {
  const parts = Array.from({ length: total }, (_, index) => index);
  const read: number[] = [];
  let running = 0;
  let most = 0;
  await readAll(parts, async (part) => {
    running += 1;
    most = Math.max(most, running);
    await Promise.resolve();
    read.push(part);
    running -= 1;
  });
  expect(most).toBe(atOnce);
  expect(read.toSorted((one, other) => one - other)).toEqual(parts);
});

it('the first fault is that of the read', async () => {
  const read = readAll([1, 2, 3], (part) => (part === 2 ? Promise.reject(new Error('no')) : Promise.resolve()));
  await expect(read).rejects.toThrow('no');
});
