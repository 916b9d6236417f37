/** Reading a partition of the `control` table whole. */
import { defined } from '../domain/defined.ts';
import { type Item, type ItemStore, StoreFault } from '../ports/item-store.ts';

/** Pages of 1 MB in one read: about 3,000 watched nodes each, 7,000 waiting ones, or 8,000 pods to be collected. */
const PAGES_MAX = 64;

/** @throws StoreFault `too-large`, in the words of `tooMany`, when more pages follow than one read takes */
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
