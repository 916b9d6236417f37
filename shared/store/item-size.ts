/**
 * Size of an item by DynamoDB's published rules: names and strings have their UTF-8 bytes, a number half a byte per
 * significant digit plus one, a boolean one byte, binary values their bytes, lists and maps three bytes and one for
 * each member. The exact rounding of numbers is not published; the result is right to one or two bytes per number.
 */
import { utf8Bytes } from '../text.ts';
import type { AttributeValue, Item } from './item-store.ts';

export const WRITE_UNIT_BYTES = 1_024;
/** One item, attribute names included. Source: "Quotas in Amazon DynamoDB", items. */
export const ITEM_BYTES_MAX = 400 * 1_024;
/** The longest sort key. Bytes. */
export const SORT_KEY_BYTES_MAX = 1_024;
/** All items of one transaction together. Source: API reference of TransactWriteItems. */
export const TRANSACT_BYTES_MAX = 4 * 1_024 * 1_024;

function numberBytes(value: number): number {
  const digits = Number.isSafeInteger(value) ? integerDigits(Math.abs(value)) : decimalDigits(Math.abs(value));
  return Math.ceil(digits / 2) + 1 + (value < 0 ? 1 : 0);
}

const decimalDigits = (value: number): number => value.toExponential().split('e')[0]!.replace('.', '').length;

/** The same without a text: nearly all numbers of items are counts and times. */
function integerDigits(value: number): number {
  let rest = value;
  while (rest !== 0 && rest % 10 === 0) rest /= 10;
  let digits = 1;
  while (rest >= 10) {
    rest = Math.floor(rest / 10);
    digits += 1;
  }
  return digits;
}

export function valueBytes(value: AttributeValue): number {
  switch (typeof value) {
    case 'string':
      return utf8Bytes(value);
    case 'number':
      return numberBytes(value);
    case 'boolean':
      return 1;
    default: {
      if (value instanceof Uint8Array) return value.length;
      let bytes = 3;
      if (Array.isArray(value)) for (const member of value) bytes += 1 + valueBytes(member);
      else for (const [name, member] of Object.entries(value)) bytes += 1 + utf8Bytes(name) + valueBytes(member);
      return bytes;
    }
  }
}

/** Bytes of a whole item, including its keys if they are among the attributes. */
export function itemBytes(item: Item): number {
  let bytes = 0;
  for (const name in item) bytes += utf8Bytes(name) + valueBytes(item[name]!);
  return bytes;
}
