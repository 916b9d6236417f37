/** Pages of Query and Scan. A page ends at its limit or at 1 MB, as in DynamoDB. */
import { textHash } from '../../text.ts';
import type { Item, ItemPosition } from '../item-store.ts';

const PAGE_BYTES_MAX = 1_024 * 1_024;
const HASHES = 2 ** 32;

/** Collects the items of one page. */
export class PageItems {
  readonly items: Item[] = [];
  /** Bytes of the items that were read. A projection does not reduce them. */
  bytes = 0;
  readonly #limit: number | undefined;
  readonly #attributes: readonly string[] | undefined;

  constructor({ limit, attributes }: { readonly limit?: number; readonly attributes?: readonly string[] }) {
    this.#limit = limit;
    this.#attributes = attributes;
  }

  /** A page has at least one item, however large the item is. A limit is at least 1. */
  get isFull(): boolean {
    return this.items.length === this.#limit || this.bytes >= PAGE_BYTES_MAX;
  }

  /** Position of the last item. */
  get last(): ItemPosition {
    const item = this.items.at(-1)!;
    return { pk: item['pk'] as string, sk: item['sk'] as string };
  }

  add(item: Item, bytes: number): void {
    this.bytes += bytes;
    this.items.push(this.#attributes === undefined ? item : project(item, this.#attributes));
  }
}

function project(item: Item, attributes: readonly string[]): Item {
  const projected: Item = { pk: item['pk']!, sk: item['sk']! };
  for (const name of attributes) {
    const value = item[name];
    if (value !== undefined) projected[name] = value;
  }
  return projected;
}

/** The segment of a scan that contains a partition: equal ranges of the hash. An index finds a range. @tools */
export const segmentOf = (pk: string, segments: number): number => Math.floor((textHash(pk) * segments) / HASHES);
