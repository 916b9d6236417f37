/** Objects of items as laws and the view of the cluster read them: parsed once. None of them changes it. */
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { Item } from '../../shared/store/item-store.ts';
import { objectOf } from '../../shared/store/object-record.ts';

const parsed = new WeakMap<Item, KubeObject>();

export function storedObject(item: Item): KubeObject {
  let object = parsed.get(item);
  if (object === undefined) {
    object = objectOf(item);
    parsed.set(item, object);
  }
  return object;
}
