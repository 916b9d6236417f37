/** Reads sharded partitions as one list in key order. */
import { defined } from '../defined.ts';
import { compareKeys, type Item, type QueryPage, StoreFault } from './item-store.ts';

/** Reads one page of one partition: at most `limit` items after `after`. */
export type PageReader = (page: { readonly after?: string; readonly limit?: number }) => Promise<QueryPage>;

export interface MergedPage {
  readonly items: readonly Item[];
  /** Key of the last item, when more may follow. */
  readonly next?: string;
}

/** Pages of one merged read, over all partitions: at 1 MB each, far beyond the memory of a function. */
const PAGES_MAX = 2_000;

interface Source {
  readonly read: PageReader;
  items: readonly Item[];
  position: number;
  /** Where its next page begins; undefined after the last page. */
  next: string | undefined;
}

const headOf = (source: Source): string => source.items[source.position]!.sk as string;

/**
 * The first `limit` items after `after` over all partitions, in order of the sort key. Pages are sized for an even
 * spread of keys, so little is read in vain. A partition's next page is read only when its last one is used up.
 */
export async function mergePages(
  readers: readonly PageReader[],
  request: { readonly after?: string; readonly limit?: number },
): Promise<MergedPage> {
  const { after, limit } = request;
  const pageLimit = limit === undefined ? undefined : Math.min(limit, Math.ceil((limit / readers.length) * 1.25) + 8);
  let pages = 0;
  const readPage = async (source: Source, from: string | undefined): Promise<void> => {
    pages += 1;
    if (pages > PAGES_MAX) {
      throw new StoreFault('too-large', `more than ${PAGES_MAX} pages in one list`, { retryable: false });
    }
    const page = await source.read({
      ...defined({ after: from }),
      ...defined({ limit: pageLimit }),
    });
    source.items = page.items;
    source.position = 0;
    source.next = page.next;
  };

  const sources = readers.map((read): Source => ({ read, items: [], position: 0, next: undefined }));
  await readAll(sources, (source) => readPage(source, after));
  const merged: Item[] = [];
  for (;;) {
    let first: Source | undefined;
    for (const source of sources) {
      while (source.position >= source.items.length && source.next !== undefined) await readPage(source, source.next);
      if (source.position >= source.items.length) continue;
      if (first === undefined || compareKeys(headOf(source), headOf(first)) < 0) first = source;
    }
    if (first === undefined) return { items: merged };
    if (merged.length === limit) return { items: merged, next: merged.at(-1)!.sk as string };
    merged.push(first.items[first.position]!);
    first.position += 1;
  }
}

/** The clients have as many sockets: a request that waits for a socket uses up its timeout. */
const READS_AT_ONCE_MAX = 32;

/** Reads all parts, at most READS_AT_ONCE_MAX at the same time. Rejects with the first fault. */
export async function readAll<Part>(parts: readonly Part[], read: (part: Part) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < parts.length) {
      const part = parts[next]!;
      next += 1;
      await read(part);
    }
  };
  await Promise.all(Array.from({ length: Math.min(parts.length, READS_AT_ONCE_MAX) }, work));
}
