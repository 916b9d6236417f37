/** Pages of Query and Scan. A page ends at its limit or at 1 MB, as in DynamoDB. */
import { textHash } from '../../text-hash.ts';
import type { Item, ItemPosition, QueryRequest, ScanRequest } from '../item-store.ts';
import { compareKeys } from '../key-order.ts';
import { type Partition, type Partitions, positionAfter, positionOf } from './partitions.ts';
import { weightOf } from './units.ts';

const PAGE_BYTES_MAX = 1_024 * 1_024;

export interface Page<Position> {
  readonly items: readonly Item[];
  /** Where the next page continues; absent for the last page. */
  readonly next?: Position;
  /** Bytes of the items that were read. A projection does not reduce them. */
  readonly bytes: number;
}

/** Collects the items of one page. */
class PageItems {
  readonly items: Item[] = [];
  bytes = 0;
  readonly #limit: number | undefined;
  readonly #attributes: readonly string[] | undefined;

  constructor({ limit, attributes }: { readonly limit?: number; readonly attributes?: readonly string[] }) {
    this.#limit = limit;
    this.#attributes = attributes;
  }

  /** A page has at least one item, however large the item is. */
  get isFull(): boolean {
    return this.items.length > 0 && (this.items.length === this.#limit || this.bytes >= PAGE_BYTES_MAX);
  }

  /** Position of the last item. */
  get last(): ItemPosition {
    const item = this.items.at(-1)!;
    return { pk: item['pk'] as string, sk: item['sk'] as string };
  }

  add(item: Item): void {
    this.bytes += weightOf(item);
    this.items.push(this.#attributes === undefined ? item : project(item, this.#attributes));
  }
}

export function queryPage(partition: Partition | undefined, request: QueryRequest): Page<string> {
  const page = new PageItems(request);
  if (partition === undefined) return page;
  const { order } = partition;
  const { through, beginsWith, descending = false } = request;
  const step = descending ? -1 : 1;
  for (let index = firstPosition(order, request); index >= 0 && index < order.length; index += step) {
    const sk = order[index]!;
    if (through !== undefined && compareKeys(sk, through) > 0) break;
    if (beginsWith !== undefined && !sk.startsWith(beginsWith)) {
      if (descending && compareKeys(sk, beginsWith) > 0) continue;
      break;
    }
    if (page.isFull) return { items: page.items, next: page.last.sk, bytes: page.bytes };
    page.add(partition.items.get(sk)!);
  }
  return page;
}

/** Position at which a query starts to read. */
function firstPosition(order: readonly string[], { after, beginsWith, descending }: QueryRequest): number {
  if (descending) return (after === undefined ? order.length : positionOf(order, after)) - 1;
  const start = positionAfter(order, after);
  return beginsWith === undefined ? start : Math.max(start, positionOf(order, beginsWith));
}

/** The segment of a scan that contains a partition. */
export const segmentOf = (pk: string, segments: number): number => (segments === 1 ? 0 : textHash(pk) % segments);

export function scanPage(partitions: Partitions, request: ScanRequest): Page<ItemPosition> {
  const { segment, segments, after } = request;
  const page = new PageItems(request);
  const remaining = [...partitions.keys()]
    .filter((pk) => segmentOf(pk, segments) === segment && (after === undefined || compareKeys(pk, after.pk) >= 0))
    .sort(compareKeys);
  for (const pk of remaining) {
    const { items, order } = partitions.get(pk)!;
    const start = positionAfter(order, pk === after?.pk ? after.sk : undefined);
    for (let index = start; index < order.length; index += 1) {
      if (page.isFull) return { items: page.items, next: page.last, bytes: page.bytes };
      page.add(items.get(order[index]!)!);
    }
  }
  return page;
}

function project(item: Item, attributes: readonly string[]): Item {
  const projected: Item = { pk: item['pk']!, sk: item['sk']! };
  for (const name of attributes) {
    const value = item[name];
    if (value !== undefined) projected[name] = value;
  }
  return projected;
}
