/** Functions of expressions: their types, what they do, and what a call costs. */

import { type CelType, readType } from './types.ts';
import { CelFailure, CelMap, CelOptional, type CelValue, isList, sizeOf, typeNameOf } from './values.ts';

/** The cost of a call besides that of its arguments. Units of cel-go. */
export type CallCost = (args: readonly CelValue[], result: CelValue) => number;

export interface Overload {
  readonly params: readonly CelType[];
  readonly result: CelType;
  readonly call: (...args: CelValue[]) => CelValue;
  /** Absent: 1. */
  readonly cost?: CallCost;
}

/** Overloads by name. A name with a leading dot is called on its first argument. */
export type Functions = ReadonlyMap<string, readonly Overload[]>;
export type Declaration = readonly [name: string, overload: Overload];

type Implementation = (...args: never[]) => CelValue;

/** @param name with a leading dot if it is called on its first argument @param types such as `string,int -> bool` */
export function declare(name: string, types: string, call: Implementation, cost?: CallCost): Declaration {
  const [params = '', result = 'dyn'] = types.split('->').map((part) => part.trim());
  const read = params === '' ? [] : splitTypes(params).map(readType);
  return [
    name,
    { params: read, result: readType(result), call: call as Overload['call'], ...(cost === undefined ? {} : { cost }) },
  ];
}

/** At the commas that are not within angle brackets. */
function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let nesting = 0;
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '<') nesting += 1;
    if (text[at] === '>') nesting -= 1;
    if (text[at] !== ',' || nesting > 0) continue;
    parts.push(text.slice(start, at));
    start = at + 1;
  }
  return [...parts, text.slice(start)];
}

export function functionsOf(...groups: readonly (readonly Declaration[])[]): Functions {
  const all = new Map<string, Overload[]>();
  for (const [name, overload] of groups.flat()) {
    const overloads = all.get(name) ?? [];
    overloads.push(overload);
    all.set(name, overloads);
  }
  return all;
}

function accepts({ kind, ...type }: CelType, value: CelValue): boolean {
  switch (kind) {
    case 'dyn':
    case 'parameter':
      return true;
    case 'list':
      return isList(value);
    case 'map':
      return value instanceof CelMap;
    case 'optional':
      return value instanceof CelOptional;
    case 'type':
      return typeNameOf(value) === 'type';
    default: {
      const { name } = type as { readonly name: string };
      const found = typeNameOf(value);
      return found === name || (name === 'null' && value === null);
    }
  }
}

/** The overload for these values. undefined: there is none. */
export const overloadFor = (overloads: readonly Overload[], args: readonly CelValue[]): Overload | undefined =>
  overloads.find(
    ({ params }) => params.length === args.length && params.every((param, i) => accepts(param, args[i] as CelValue)),
  );

export const noSuchOverload = (name: string, args: readonly CelValue[]): CelFailure =>
  new CelFailure(`no such overload: ${name.replace(/^\./, '')}(${args.map(typeNameOf).join(', ')})`);

/** The cost of reading a text or list once. */
export const traversal = (value: CelValue, times = 1): number => Math.ceil(sizeOf(value) * times * 0.1);
export const readsFirst: CallCost = ([first = null]) => traversal(first);
export const readsFirstTwice: CallCost = ([first = null]) => traversal(first, 2);
/** A regular expression is assumed to have an operator per four characters. */
export const matchCost: CallCost = ([text = null, pattern = null]) =>
  Math.ceil((1 + sizeOf(text)) * 0.1) * Math.ceil(sizeOf(pattern) * 0.25);
