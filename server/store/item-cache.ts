/**
 * Decoded items of the newest committed state, those that were used of late, up to a limit. It is exact: the group that
 * changes a row changes the cache in the same turn, and no other process writes rows (store-lock.ts).
 *
 * At the limit the oldest item that was not used since the last look at it is dropped (second chance). To move an item
 * at each use instead would let the map be built anew every few hundred reads.
 */
import type { Item } from '../../shared/store/item-store.ts';

interface Cached {
  readonly item: Item;
  readonly bytes: number;
  isUsed: boolean;
}

/** What an item needs besides the text of its attributes: map entry, key, shape. Bytes. */
const OVERHEAD_BYTES = 300;

export class ItemCache {
  hits = 0;
  misses = 0;
  bytes = 0;
  readonly #bytesMax: number;
  readonly #items = new Map<string, Cached>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(key: string): Item | undefined {
    const cached = this.#items.get(key);
    if (cached === undefined) {
      this.misses += 1;
      return undefined;
    }
    this.hits += 1;
    cached.isUsed = true;
    return cached.item;
  }

  /** Looks without use: neither counted nor kept longer. */
  peek(key: string): Item | undefined {
    return this.#items.get(key)?.item;
  }

  set(key: string, item: Item, encodedLength: number): void {
    this.delete(key);
    const bytes = encodedLength + OVERHEAD_BYTES;
    this.#items.set(key, { item, bytes, isUsed: false });
    this.bytes += bytes;
    // One that is moved to the end is met there as unused, so the loop ends.
    for (const [oldest, cached] of this.#items) {
      if (this.bytes <= this.#bytesMax) return;
      if (cached.isUsed) {
        cached.isUsed = false;
        this.#items.delete(oldest);
        this.#items.set(oldest, cached);
      } else this.delete(oldest);
    }
  }

  delete(key: string): void {
    const cached = this.#items.get(key);
    if (cached === undefined) return;
    this.#items.delete(key);
    this.bytes -= cached.bytes;
  }

  entries(): readonly Item[] {
    return [...this.#items.values()].map(({ item }) => item);
  }
}
