/** Changes of one table in order, as records of its stream. */
import { defined } from '../../defined.ts';
import type { AttributeValue, Item, ItemKey } from '../item-store.ts';

/** One change of one item, with the fields of a stream record. */
export interface ItemChange {
  /** Counts from 1 within the table. */
  readonly sequence: number;
  readonly key: ItemKey;
  readonly type: 'INSERT' | 'MODIFY' | 'REMOVE';
  readonly oldImage?: Item;
  readonly newImage?: Item;
  /** Time to live deleted the item, not a caller. */
  readonly expired?: true;
}

export class ItemChanges {
  #last = 0;
  readonly #changes: ItemChange[] = [];

  /** Adds a change. A write that changed nothing has no stream record. */
  add(key: ItemKey, oldImage: Item | undefined, newImage: Item | undefined, isExpired: boolean): void {
    if (areEqual(oldImage, newImage)) return;
    this.#last += 1;
    this.#changes.push({
      sequence: this.#last,
      key,
      type: oldImage === undefined ? 'INSERT' : newImage === undefined ? 'REMOVE' : 'MODIFY',
      ...defined({ oldImage, newImage }),
      ...(isExpired ? { expired: true } : {}),
    });
  }

  /** Changes after a sequence number. */
  after(sequence: number): readonly ItemChange[] {
    return this.#changes.slice(this.#countThrough(sequence));
  }

  /** Drops changes up to and including a sequence number. */
  drop(through: number): void {
    this.#changes.splice(0, this.#countThrough(through));
  }

  /** How many of the kept changes have this sequence number or a lower one. */
  #countThrough(sequence: number): number {
    const first = this.#changes[0]?.sequence ?? 1;
    return Math.max(0, sequence + 1 - first);
  }
}

function areEqual(one: AttributeValue | undefined, other: AttributeValue | undefined): boolean {
  if (one === other) return true;
  if (one instanceof Uint8Array || other instanceof Uint8Array) return areEqualBytes(one, other);
  if (typeof one !== 'object' || typeof other !== 'object' || Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => areEqual((one as Item)[name], (other as Item)[name]))
  );
}

const areEqualBytes = (one: AttributeValue | undefined, other: AttributeValue | undefined): boolean =>
  one instanceof Uint8Array &&
  other instanceof Uint8Array &&
  one.length === other.length &&
  one.every((byte, index) => byte === other[index]);
