/** Functions of expressions: their types, what they do, and what a call costs. */

import { type CelType, readType } from './types.ts';
import { CelFailure, CelMap, CelOptional, type CelValue, isList, sizeOf, typeNameOf } from './values.ts';

/** The cost of a call besides that of its arguments. Units of cel-go. */
export type CallCost = (args: readonly CelValue[], result: CelValue) => number;

export interface Overload {
  readonly params: readonly CelType[];
  readonly result: CelType;
  /** Whether a value has the type of the parameter at its place. */
  readonly accepts: readonly ((value: CelValue) => boolean)[];
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
  const overload = {
    params: read,
    result: readType(result),
    accepts: read.map(acceptsType),
    call: call as Overload['call'],
  };
  return [name, cost === undefined ? overload : { ...overload, cost }];
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

function acceptsType(type: CelType): (value: CelValue) => boolean {
  switch (type.kind) {
    case 'dyn':
    case 'parameter':
      return () => true;
    case 'list':
      return isList;
    case 'map':
      return (value) => value instanceof CelMap;
    case 'optional':
      return (value) => value instanceof CelOptional;
    case 'type':
      return (value) => typeNameOf(value) === 'type';
    default:
      return acceptsName(type.name);
  }
}

function acceptsName(name: string): (value: CelValue) => boolean {
  switch (name) {
    case 'int':
      return (value) => typeof value === 'bigint';
    case 'double':
      return (value) => typeof value === 'number';
    case 'string':
      return (value) => typeof value === 'string';
    case 'bool':
      return (value) => typeof value === 'boolean';
    case 'null':
      return (value) => value === null;
    default:
      return (value) => typeNameOf(value) === name;
  }
}

const fits = ({ accepts }: Overload, args: readonly CelValue[]): boolean => {
  if (accepts.length !== args.length) return false;
  for (let i = 0; i < args.length; i += 1) if (!accepts[i]?.(args[i] as CelValue)) return false;
  return true;
};

/** The overload for these values. undefined: there is none. @param likely that of the last call at the same place */
export function overloadFor(
  overloads: readonly Overload[],
  args: readonly CelValue[],
  likely?: Overload,
): Overload | undefined {
  return likely !== undefined && fits(likely, args) ? likely : overloads.find((each) => fits(each, args));
}

export const noSuchOverload = (name: string, args: readonly CelValue[]): CelFailure =>
  new CelFailure(`no such overload: ${name.replace(/^\./, '')}(${args.map(typeNameOf).join(', ')})`);

/** The cost of reading a text or list once. */
export const traversal = (value: CelValue, times = 1): number => Math.ceil(sizeOf(value) * times * 0.1);
export const readsFirst: CallCost = ([first = null]) => traversal(first);
export const readsFirstTwice: CallCost = ([first = null]) => traversal(first, 2);
/** A regular expression is assumed to have an operator per four characters. */
export const matchCost: CallCost = ([text = null, pattern = null]) =>
  Math.ceil((1 + sizeOf(text)) * 0.1) * Math.ceil(sizeOf(pattern) * 0.25);
