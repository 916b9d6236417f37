/** Conditions of writes, evaluated as DynamoDB evaluates them. */
import { type AttributeValue, type Condition, compareKeys, type Item, StoreFault } from '../item-store.ts';

/** Whether an item satisfies a condition. An item that does not exist is `undefined`. */
export function conditionHolds(condition: Condition, item: Item | undefined): boolean {
  switch (condition.kind) {
    case 'itemExists':
      return item !== undefined;
    case 'itemAbsent':
      return item === undefined;
    case 'has':
      return item?.[condition.attribute] !== undefined;
    case 'lacks':
      return item?.[condition.attribute] === undefined;
    case 'all':
      return condition.of.every((part) => conditionHolds(part, item));
    case 'any':
      return condition.of.some((part) => conditionHolds(part, item));
    case 'compare':
      return comparisonHolds(item?.[condition.attribute], condition.op, condition.value);
  }
}

const equals = (value: AttributeValue | undefined, operand: string | number | boolean | Uint8Array): boolean =>
  operand instanceof Uint8Array
    ? value instanceof Uint8Array && value.length === operand.length && operand.every((byte, at) => byte === value[at])
    : value === operand;

/** @throws StoreFault `rejected` for a comparison of booleans or bytes by order */
function comparisonHolds(
  value: AttributeValue | undefined,
  op: Extract<Condition, { kind: 'compare' }>['op'],
  operand: string | number | boolean | Uint8Array,
): boolean {
  if (op === '=') return equals(value, operand);
  if (op === '<>') return !equals(value, operand);
  if (typeof operand !== 'string' && typeof operand !== 'number') {
    throw new StoreFault('rejected', 'booleans and bytes have no order', { retryable: false });
  }
  if (typeof value !== typeof operand) return false;
  const order = typeof operand === 'string' ? compareKeys(value as string, operand) : (value as number) - operand;
  switch (op) {
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
  }
}
