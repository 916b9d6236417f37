/** Conditions and updates as DynamoDB expressions. Names and values are placeholders: no attribute name is reserved. */
import { type Condition, StoreFault, type UpdateWrite } from '../../store/item-store.ts';
import { toWire, type WireItem } from './attribute-value.ts';

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
