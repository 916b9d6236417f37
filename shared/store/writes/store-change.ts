/** A change of one item, as the streams of the tables report it. */
import { defined } from '../../defined.ts';
import type { AttributeValue, Item, ItemKey } from '../item-store.ts';

export interface StoreChange {
  readonly key: ItemKey;
  readonly type: 'INSERT' | 'MODIFY' | 'REMOVE';
  readonly oldImage?: Item;
  readonly newImage?: Item;
  /** `expired`: time to live deleted the item, not a caller. */
  readonly cause: 'write' | 'expired';
}

/** undefined for a write that changed nothing: it has no stream record. */
export function changeOf(
  key: ItemKey,
  oldImage: Item | undefined,
  newImage: Item | undefined,
  cause: StoreChange['cause'],
): StoreChange | undefined {
  if (areEqual(oldImage, newImage)) return undefined;
  const type = oldImage === undefined ? 'INSERT' : newImage === undefined ? 'REMOVE' : 'MODIFY';
  return { key, type, ...defined({ oldImage, newImage }), cause };
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
