/** Conditions of writes, evaluated as DynamoDB evaluates them. */
import { type AttributeValue, type Condition, type Item, StoreFault } from '../../ports/item-store.ts';
import { compareKeys } from '../../ports/key-order.ts';

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

/** @throws StoreFault `rejected` for a comparison of booleans by order */
function comparisonHolds(
  value: AttributeValue | undefined,
  op: Extract<Condition, { kind: 'compare' }>['op'],
  operand: string | number | boolean,
): boolean {
  if (op === '=') return value === operand;
  if (op === '<>') return value !== operand;
  if (typeof operand === 'boolean') throw new StoreFault('rejected', 'booleans have no order', { retryable: false });
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
