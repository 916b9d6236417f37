/**
 * Items as values of a column. An item is its JSON, without its keys: readable in any SQLite shell, and encoded and
 * decoded by V8 itself (docs/decisions/0056-one-file.md has the alternatives).
 *
 * JSON has no bytes, and an item has no null. So null stands for a byte string, and the byte strings follow the JSON in
 * order, each behind its length. Such an item is a BLOB:
 *
 *   4 bytes   length of the JSON, little-endian
 *   …         the JSON in UTF-8
 *   4 bytes   length of the first byte string, little-endian; the byte string; and the next
 */
import { setMember } from '../../shared/kubernetes/json.ts';
import type { AttributeValue, Item } from '../../shared/store/item-store.ts';

export type EncodedItem = string | Uint8Array;

const LENGTH_BYTES = 4;

/** The value of a column is no item. The file is damaged, or something else wrote it. */
export class EncodingError extends Error {
  override readonly name = 'EncodingError';
}

export function encodeItem(item: Item): EncodedItem {
  const { pk: _pk, sk: _sk, ...attributes } = item;
  return hasBytes(attributes) ? withByteStrings(attributes) : JSON.stringify(attributes);
}

/** Frozen, with its keys. @throws EncodingError */
export function decodeItem(encoded: unknown, pk: string, sk: string): Item {
  try {
    const attributes = typeof encoded === 'string' ? JSON.parse(encoded) : fromByteStrings(encoded);
    return frozen({ ...attributes, pk, sk });
  } catch (cause) {
    throw new EncodingError(`the item ${pk} ${sk} cannot be decoded`, { cause });
  }
}

const isContainer = (value: AttributeValue): value is AttributeValue[] | Item =>
  typeof value === 'object' && !(value instanceof Uint8Array);

function hasBytes(container: AttributeValue[] | Item): boolean {
  for (const name in container) {
    const value = (container as Item)[name]!;
    if (value instanceof Uint8Array || (isContainer(value) && hasBytes(value))) return true;
  }
  return false;
}

type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

function withByteStrings(attributes: Item): Uint8Array {
  const found: Uint8Array[] = [];
  const toJson = (value: AttributeValue): Json => {
    if (value instanceof Uint8Array) {
      found.push(value);
      return null;
    }
    if (Array.isArray(value)) return value.map(toJson);
    if (typeof value !== 'object') return value;
    const members: { [name: string]: Json } = {};
    for (const name in value) setMember(members, name, toJson(value[name]!));
    return members;
  };
  const json = Buffer.from(JSON.stringify(toJson(attributes)));
  const parts = [json, ...found];
  const encoded = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + LENGTH_BYTES + part.length, 0));
  let at = 0;
  for (const part of parts) {
    at = encoded.writeUInt32LE(part.length, at);
    encoded.set(part, at);
    at += part.length;
  }
  return encoded;
}

function fromByteStrings(encoded: unknown): Item {
  if (!(encoded instanceof Uint8Array)) throw new TypeError('neither text nor bytes');
  const bytes = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.length);
  let at = 0;
  const next = (): Uint8Array => {
    const from = at + LENGTH_BYTES;
    at = from + bytes.readUInt32LE(at);
    if (at > bytes.length) throw new RangeError('a byte string is cut off');
    return new Uint8Array(encoded.buffer, encoded.byteOffset + from, at - from);
  };
  const fromJson = (value: Json): AttributeValue => {
    if (value === null) return next();
    if (Array.isArray(value)) return value.map(fromJson);
    if (typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, fromJson(member)]));
  };
  return fromJson(JSON.parse(Buffer.from(next()).toString())) as Item;
}

/** Bytes cannot be frozen. The port says that they do not change. */
function frozen<T extends AttributeValue[] | Item>(container: T): T {
  for (const name in container) {
    const value = container[name] as AttributeValue;
    if (isContainer(value)) frozen(value);
  }
  return Object.freeze(container);
}
