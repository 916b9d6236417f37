/** The item that a write produces, with the limits of the service. */
import { utf8Bytes } from '../../text.ts';
import {
  type AttributeValue,
  ITEM_BYTES_MAX,
  type Item,
  type ItemKey,
  itemBytes,
  SORT_KEY_BYTES_MAX,
  StoreFault,
  type Write,
} from '../item-store.ts';
import { keepWeight } from './item-weight.ts';

// Source of these limits: Amazon DynamoDB Developer Guide, "Quotas in Amazon DynamoDB".
const PARTITION_KEY_BYTES_MAX = 2_048;
/** The magnitude of a number is below this. */
const NUMBER_LIMIT = 1e126;
const NUMBER_MIN = 1e-130;

/** @throws StoreFault `rejected` */
export function checkKey({ pk, sk }: Pick<ItemKey, 'pk' | 'sk'>): void {
  if (pk === '' || sk === '') throw new StoreFault('rejected', 'a key is empty', { retryable: false });
  if (utf8Bytes(pk) > PARTITION_KEY_BYTES_MAX || utf8Bytes(sk) > SORT_KEY_BYTES_MAX) {
    throw new StoreFault('rejected', 'a key is longer than 2,048 or 1,024 bytes', { retryable: false });
  }
}

/**
 * The item after a write; undefined after a delete. It is frozen: no reader can change the table.
 *
 * @throws StoreFault `rejected` for a key or a value that DynamoDB does not accept, `too-large` for an item over 400 KB
 */
export function itemAfter(write: Write, current: Item | undefined): Item | undefined {
  const { pk, sk } = write.key;
  checkKey(write.key);
  if (write.kind === 'delete') return undefined;
  const next: Item =
    write.kind === 'put' ? { ...copyItem(write.item), pk, sk } : { ...updatedItem(write, current), pk, sk };
  const bytes = itemBytes(next);
  if (bytes > ITEM_BYTES_MAX) {
    throw new StoreFault('too-large', 'the item is larger than 400 KB', { retryable: false });
  }
  keepWeight(next, bytes);
  return Object.freeze(next);
}

function updatedItem(write: Extract<Write, { kind: 'update' }>, current: Item | undefined): Item {
  const next: Item = { ...current };
  for (const [name, value] of Object.entries(write.setIfAbsent ?? {})) next[name] ??= frozenCopy(value);
  for (const [name, value] of Object.entries(write.set ?? {})) next[name] = frozenCopy(value);
  for (const [name, amount] of Object.entries(write.add ?? {})) {
    const before = next[name] ?? 0;
    if (typeof before !== 'number') {
      throw new StoreFault('rejected', 'ADD to an attribute that is not a number', { retryable: false });
    }
    next[name] = before + amount;
  }
  for (const name of write.remove ?? []) delete next[name];
  return next;
}

function copyItem(item: Item): Item {
  const copy: Item = {};
  for (const name in item) copy[name] = frozenCopy(item[name]!);
  return copy;
}

const isStorable = (value: number): boolean =>
  value === 0 || (Math.abs(value) >= NUMBER_MIN && Math.abs(value) < NUMBER_LIMIT);

function frozenCopy(value: AttributeValue): AttributeValue {
  if (typeof value === 'number' && !isStorable(value)) {
    throw new StoreFault('rejected', `${value} is not a number that an item can hold`, { retryable: false });
  }
  // Bytes cannot be frozen. The port says that they do not change.
  if (typeof value !== 'object' || value instanceof Uint8Array) return value;
  return Object.freeze(Array.isArray(value) ? value.map(frozenCopy) : copyItem(value)) as AttributeValue;
}
