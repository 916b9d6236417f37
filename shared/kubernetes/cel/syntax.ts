/** The syntax tree of an expression. Macros are nodes of their own: their cost and their types are known. */

import type { CelValue } from './values.ts';

interface Node {
  /** Offset in the expression. UTF-16 units. */
  readonly at: number;
  /** Nodes from here to the deepest leaf. */
  readonly depth: number;
}

export interface MapEntry {
  readonly key: Expression;
  readonly value: Expression;
  /** `{?key: value}`: the value is an optional, and the entry exists if that has a value. */
  readonly isOptional: boolean;
}

export interface FieldEntry {
  readonly name: string;
  readonly value: Expression;
  readonly isOptional: boolean;
}

export type FoldOperator =
  | 'all'
  | 'exists'
  | 'existsOne'
  | 'map'
  | 'filter'
  | 'transformList'
  | 'transformMap'
  | 'transformMapEntry';

/** `range.all(x, predicate)` and the like. */
export interface Fold extends Node {
  readonly kind: 'fold';
  readonly operator: FoldOperator;
  readonly range: Expression;
  /** One variable, the item or key; or two: index and item, key and value. */
  readonly variables: readonly string[];
  /** Absent: every item counts. */
  readonly filter?: Expression;
  readonly body: Expression;
}

export type Expression =
  | (Node & { readonly kind: 'constant'; readonly value: CelValue })
  | (Node & { readonly kind: 'identifier'; readonly name: string })
  /** `operand.field`; `isTest`: `has(operand.field)`; `isOptional`: `operand.?field`. */
  | (Node & {
      readonly kind: 'select';
      readonly operand: Expression;
      readonly field: string;
      readonly isTest: boolean;
      readonly isOptional: boolean;
    })
  | (Node & {
      readonly kind: 'index';
      readonly operand: Expression;
      readonly key: Expression;
      readonly isOptional: boolean;
    })
  | (Node & {
      readonly kind: 'call';
      readonly name: string;
      readonly target?: Expression;
      readonly args: readonly Expression[];
    })
  | (Node & { readonly kind: 'and' | 'or'; readonly operands: readonly Expression[] })
  | (Node & {
      readonly kind: 'conditional';
      readonly condition: Expression;
      readonly yes: Expression;
      readonly no: Expression;
    })
  | (Node & {
      readonly kind: 'list';
      readonly items: readonly Expression[];
      readonly optionalItems: ReadonlySet<number>;
    })
  | (Node & { readonly kind: 'map'; readonly entries: readonly MapEntry[] })
  | (Node & { readonly kind: 'message'; readonly name: string; readonly fields: readonly FieldEntry[] })
  | Fold
  /** `optional.optMap(x, body)` and `optFlatMap`: body with the value as a variable. */
  | (Node & {
      readonly kind: 'optionalMap';
      readonly operand: Expression;
      readonly variable: string;
      readonly body: Expression;
      readonly isFlat: boolean;
    });

/** Why an expression cannot be used, and where. */
export interface Issue {
  readonly at: number;
  readonly message: string;
}

/** Characters of the expression that a message shows before and after the fault. */
const SHOWN_MAX = 1_024;

/** Issues as cel-go writes them: each with its line, its column and the line of the expression. */
export function issuesText(source: string, issues: readonly Issue[]): string {
  return issues.map((issue) => issueText(source, issue)).join('\n');
}

function issueText(source: string, { at, message }: Issue): string {
  const before = source.slice(0, at);
  const line = before.split('\n').length;
  const start = before.lastIndexOf('\n') + 1;
  const column = at - start;
  const end = source.indexOf('\n', at);
  const head = `ERROR: <input>:${line}:${column + 1}: ${message}`;
  if (column > SHOWN_MAX) return head;
  const text = source.slice(start, end === -1 ? undefined : end).slice(0, SHOWN_MAX);
  return `${head}\n | ${text}\n | ${'.'.repeat(column)}^`;
}
