/** The items of one table by partition key, each partition in order of its sort keys. */
import { compareKeys, type Item } from '../item-store.ts';

export interface Partition {
  readonly items: Map<string, Item>;
  /** Sort keys in order. Writes keep the order, so reads never sort. */
  readonly order: string[];
}

export type Partitions = Map<string, Partition>;

/** Writes one item, or deletes it if `next` is undefined. */
export function replaceItem(partitions: Partitions, pk: string, sk: string, next: Item | undefined): void {
  const partition = partitions.get(pk);
  if (next !== undefined) insertItem(partition ?? newPartition(partitions, pk), sk, next);
  else if (partition?.items.delete(sk) === true) {
    partition.order.splice(positionOf(partition.order, sk), 1);
    if (partition.order.length === 0) partitions.delete(pk);
  }
}

function newPartition(partitions: Partitions, pk: string): Partition {
  const partition: Partition = { items: new Map(), order: [] };
  partitions.set(pk, partition);
  return partition;
}

function insertItem({ items, order }: Partition, sk: string, item: Item): void {
  if (!items.has(sk)) order.splice(positionOf(order, sk), 0, sk);
  items.set(sk, item);
}

/** Every item, in key order. */
export const itemsInOrder = (partitions: Partitions): readonly Item[] =>
  [...partitions.entries()]
    .sort(([one], [other]) => compareKeys(one, other))
    .flatMap(([, partition]) => partition.order.map((sk) => partition.items.get(sk)!));

/** Position of a sort key, or the position at which it would be inserted. */
export function positionOf(order: readonly string[], sk: string): number {
  // Most keys arrive in order, as resourceVersions do. So the end is checked first.
  const last = order.at(-1);
  if (last === undefined || compareKeys(last, sk) < 0) return order.length;
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareKeys(order[middle]!, sk) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Position of the first sort key after this one; 0 without one. */
export function positionAfter(order: readonly string[], sk: string | undefined): number {
  if (sk === undefined) return 0;
  const position = positionOf(order, sk);
  return order[position] === sk ? position + 1 : position;
}
