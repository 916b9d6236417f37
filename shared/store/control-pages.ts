/** Reads a whole partition of the `control` table. */
import { defined } from '../defined.ts';
import { type Item, type ItemStore, StoreFault } from './item-store.ts';

/** Pages in one read. A page of 1 MB holds about 3,000 watched nodes, 7,000 queued nodes, or 8,000 pods to collect. */
const PAGES_MAX = 64;

/** @throws StoreFault `too-large` with the message `tooMany`, if the partition has more pages */
export async function* controlPages(
  items: Pick<ItemStore, 'query'>,
  pk: string,
  { consistent, tooMany }: { readonly consistent: boolean; readonly tooMany: string },
): AsyncGenerator<readonly Item[], void, undefined> {
  let after: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await items.query({ table: 'control', pk, consistent, ...defined({ after }) });
    yield page.items;
    if (page.next === undefined) return;
    after = page.next;
  }
  throw new StoreFault('too-large', tooMany, { retryable: false });
}
