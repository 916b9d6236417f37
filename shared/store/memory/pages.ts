/** Pages of Query and Scan over partitions in memory. */
import { compareKeys, type Item, type ItemPosition, type QueryRequest, type ScanRequest } from '../item-store.ts';
import { weightOf } from '../writes/item-weight.ts';
import { PageItems, segmentOf } from '../writes/page-items.ts';
import { type Partition, type Partitions, positionAfter, positionOf } from './partitions.ts';

export interface Page<Position> {
  readonly items: readonly Item[];
  /** Where the next page continues; absent for the last page. */
  readonly next?: Position;
  /** Bytes of the items that were read. A projection does not reduce them. */
  readonly bytes: number;
}

const add = (page: PageItems, item: Item): void => page.add(item, weightOf(item));

export function queryPage(partition: Partition | undefined, request: QueryRequest): Page<string> {
  const page = new PageItems(request);
  if (partition === undefined) return page;
  const { order } = partition;
  const { through, beginsWith } = request;
  for (let index = firstPosition(order, request); index < order.length; index += 1) {
    const sk = order[index]!;
    if (through !== undefined && compareKeys(sk, through) > 0) break;
    if (beginsWith !== undefined && !sk.startsWith(beginsWith)) break;
    if (page.isFull) return { items: page.items, next: page.last.sk, bytes: page.bytes };
    add(page, partition.items.get(sk)!);
  }
  return page;
}

/** Position at which a query starts to read. */
function firstPosition(order: readonly string[], { after, beginsWith }: QueryRequest): number {
  const start = positionAfter(order, after);
  return beginsWith === undefined ? start : Math.max(start, positionOf(order, beginsWith));
}

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
      add(page, items.get(order[index]!)!);
    }
  }
  return page;
}
