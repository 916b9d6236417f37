/** Short names for conditions of writes. */
import type { Condition } from './item-store.ts';

export const is = (attribute: string, value: string | number | Uint8Array): Condition => ({
  kind: 'compare',
  attribute,
  op: '=',
  value,
});
export const lacks = (attribute: string): Condition => ({ kind: 'lacks', attribute });
/** A single condition stays as it is. */
export const all = (...of: Condition[]): Condition => (of.length === 1 ? of[0]! : { kind: 'all', of });
export const any = (...of: Condition[]): Condition => ({ kind: 'any', of });
