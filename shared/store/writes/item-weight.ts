/** Sizes of stored items. An item is measured once: pages, limits and units need its size at every access. */
import { type Item, itemBytes } from '../item-store.ts';

const weights = new WeakMap<Item, number>();

/** Bytes of an item; 0 for one that does not exist. */
export const weightOf = (item: Item | undefined): number =>
  item === undefined ? 0 : (weights.get(item) ?? itemBytes(item));

// Stryker disable next-line BlockStatement: an item that was not kept is measured again, with the same result.
export function keepWeight(item: Item, bytes: number): void {
  weights.set(item, bytes);
}

/** Bytes that a write is billed for: the larger of the item before and after it. */
export const writtenBytes = (before: Item | undefined, after: Item | undefined): number =>
  Math.max(weightOf(before), weightOf(after));
