/** Converts attribute values to and from DynamoDB's wire format. We store six types: S, N, BOOL, B, L, M. */
import type { AttributeValue as WireValue } from '@aws-sdk/client-dynamodb';
import { type AttributeValue, type Item, StoreFault } from '../../store/item-store.ts';

export type WireItem = Record<string, WireValue>;

export function toWire(value: AttributeValue): WireValue {
  switch (typeof value) {
    case 'string':
      return { S: value };
    case 'number':
      if (!Number.isFinite(value)) throw new StoreFault('rejected', 'a number is not finite', { retryable: false });
      return { N: String(value) };
    case 'boolean':
      return { BOOL: value };
    default:
      if (value instanceof Uint8Array) return { B: value };
      return Array.isArray(value) ? { L: value.map(toWire) } : { M: itemToWire(value) };
  }
}

export function itemToWire(item: Item): WireItem {
  const wire: WireItem = {};
  for (const name in item) wire[name] = toWire(item[name]!);
  return wire;
}

/** @throws StoreFault `rejected` for a type that we never write: another program wrote to the table */
export function fromWire(wire: WireValue): AttributeValue {
  if (wire.S !== undefined) return wire.S;
  if (wire.N !== undefined) return Number(wire.N);
  if (wire.BOOL !== undefined) return wire.BOOL;
  if (wire.B !== undefined) return bytesOf(wire.B);
  if (wire.L !== undefined) return wire.L.map(fromWire);
  if (wire.M !== undefined) return itemFromWire(wire.M);
  throw new StoreFault('rejected', 'an attribute is of a type this store does not write', { retryable: false });
}

/** The SDK returns bytes. In the event of a stream they are Base64. */
const bytesOf = (binary: Uint8Array | string): Uint8Array =>
  typeof binary === 'string' ? Buffer.from(binary, 'base64') : binary;

/** Also reads the images of a stream record, which have the same format. */
export function itemFromWire(wire: WireItem): Item {
  const item: Item = {};
  for (const name in wire) item[name] = fromWire(wire[name]!);
  return item;
}

/** The item if it has attributes besides its keys. For a missing item some engines return only the keys, or nothing. */
export function presentItem(wire: WireItem | undefined): Item | undefined {
  if (wire === undefined) return undefined;
  const item = itemFromWire(wire);
  return Object.keys(item).some((name) => name !== 'pk' && name !== 'sk') ? item : undefined;
}
