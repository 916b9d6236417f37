/**
 * Attribute values, conditions and updates in DynamoDB's wire format. We store six types: S, N, BOOL, B, L, M. In an
 * expression names and values are placeholders: no attribute name is reserved.
 */
import type { AttributeValue as WireValue } from '@aws-sdk/client-dynamodb';
import { type AttributeValue, type Condition, type Item, StoreFault, type UpdateWrite } from '../store/item-store.ts';

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

/** Collects the placeholders that the expressions of one request share. */
export interface Placeholders {
  readonly names: Record<string, string>;
  readonly values: WireItem;
  readonly nameOf: Map<string, string>;
}

export const placeholders = (): Placeholders => ({ names: {}, values: {}, nameOf: new Map() });

export function nameIn(holders: Placeholders, attribute: string): string {
  let name = holders.nameOf.get(attribute);
  if (name === undefined) {
    name = `#${holders.nameOf.size}`;
    holders.nameOf.set(attribute, name);
    holders.names[name] = attribute;
  }
  return name;
}

export function valueIn(holders: Placeholders, value: Parameters<typeof toWire>[0]): string {
  const name = `:${Object.keys(holders.values).length}`;
  holders.values[name] = toWire(value);
  return name;
}

/** The placeholders as fields of a request. The service refuses an empty map of names or values. */
export const placeholderInput = ({ names, values, nameOf }: Placeholders) => ({
  ...(nameOf.size === 0 ? {} : { ExpressionAttributeNames: names }),
  ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
});

export function conditionExpression(condition: Condition, holders: Placeholders): string {
  switch (condition.kind) {
    case 'itemExists':
      return `attribute_exists(${nameIn(holders, 'pk')})`;
    case 'itemAbsent':
      return `attribute_not_exists(${nameIn(holders, 'pk')})`;
    case 'has':
      return `attribute_exists(${nameIn(holders, condition.attribute)})`;
    case 'lacks':
      return `attribute_not_exists(${nameIn(holders, condition.attribute)})`;
    case 'compare':
      // The service rejects this for booleans; the embedded engine does not.
      if (typeof condition.value !== 'string' && typeof condition.value !== 'number') {
        if (condition.op !== '=' && condition.op !== '<>') {
          throw new StoreFault('rejected', 'booleans and bytes have no order', { retryable: false });
        }
      }
      return `${nameIn(holders, condition.attribute)} ${condition.op} ${valueIn(holders, condition.value)}`;
    case 'all':
    case 'any': {
      const parts = condition.of.map((part) => conditionExpression(part, holders));
      return parts.length === 1 ? parts[0]! : `(${parts.join(condition.kind === 'all' ? ' AND ' : ' OR ')})`;
    }
  }
}

/** Empty when the update names no change: DynamoDB then only makes sure that the item exists. */
export function updateExpression(write: UpdateWrite, holders: Placeholders): string {
  const sets: string[] = [];
  for (const name in write.set) sets.push(`${nameIn(holders, name)} = ${valueIn(holders, write.set[name]!)}`);
  for (const name in write.setIfAbsent) {
    const attribute = nameIn(holders, name);
    sets.push(`${attribute} = if_not_exists(${attribute}, ${valueIn(holders, write.setIfAbsent[name]!)})`);
  }
  const adds: string[] = [];
  for (const name in write.add) adds.push(`${nameIn(holders, name)} ${valueIn(holders, write.add[name]!)}`);
  const removes = (write.remove ?? []).map((name) => nameIn(holders, name));
  const clauses: string[] = [];
  if (sets.length > 0) clauses.push(`SET ${sets.join(', ')}`);
  if (adds.length > 0) clauses.push(`ADD ${adds.join(', ')}`);
  if (removes.length > 0) clauses.push(`REMOVE ${removes.join(', ')}`);
  return clauses.join(' ');
}
