import { expect, it } from 'vitest';
import { controlPages } from './control-pages.ts';
import type { ItemStore, QueryRequest } from './item-store.ts';

/** A partition of so many pages. */
function partition(pagesTotal: number) {
  const asked: QueryRequest[] = [];
  const query: ItemStore['query'] = async (request) => {
    asked.push(request);
    const page = asked.length;
    return { items: [{ sk: page }], ...(page < pagesTotal && { next: `k${page}` }) };
  };
  return { asked, read: () => controlPages({ query }, 'queue', { consistent: true, tooMany: 'too many rows' }) };
}

it('all pages of a partition are read, each after the one before', async () => {
  const { asked, read } = partition(3);
  const found: unknown[] = [];
  for await (const items of read()) found.push(...items);
  expect(found).toEqual([{ sk: 1 }, { sk: 2 }, { sk: 3 }]);
  const request = { table: 'control', pk: 'queue', consistent: true };
  expect(asked).toEqual([request, { ...request, after: 'k1' }, { ...request, after: 'k2' }]);
});

it('no page is read that the caller does not ask for', async () => {
  const { asked, read } = partition(3);
  for await (const _ of read()) break;
  expect(asked).toHaveLength(1);
});

it.each([
  [64, undefined],
  [65, { code: 'too-large', message: 'too many rows', retryable: false }],
])('%i pages are read, or refused with %j', async (pagesTotal, fault) => {
  const { asked, read } = partition(pagesTotal);
  const readAll = async (): Promise<void> => {
    for await (const items of read()) expect(items).toHaveLength(1);
  };
  if (fault === undefined) await readAll();
  else await expect(readAll()).rejects.toMatchObject(fault);
  expect(asked).toHaveLength(64);
});
