/** Conditions of writes, in the words of the stores. */
import type { Condition } from '../ports/item-store.ts';

export const is = (attribute: string, value: string | number): Condition => ({
  kind: 'compare',
  attribute,
  op: '=',
  value,
});
export const lacks = (attribute: string): Condition => ({ kind: 'lacks', attribute });
/** One alone is itself. */
export const all = (...of: Condition[]): Condition => (of.length === 1 ? of[0]! : { kind: 'all', of });
export const any = (...of: Condition[]): Condition => ({ kind: 'any', of });
