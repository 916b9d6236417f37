/**
 * The libraries of cel-go that Kubernetes adds to every expression, at Kubernetes' versions of them: strings 2, sets,
 * lists 3, optional types (k8s.io/apiserver, pkg/cel/environment/base.go).
 */

import { type Declaration, declare, readsFirst, readsFirstTwice, traversal } from './functions.ts';
import { TEXT_LENGTH_MAX, TOO_LONG } from './standard.ts';
import { formatText, quoted } from './text-format.ts';
import {
  CelFailure,
  CelMap,
  CelOptional,
  type CelValue,
  celCompare,
  celEqual,
  hasSurrogates,
  isList,
  NONE,
  numberOf,
  sizeOf,
} from './values.ts';

/** Positions in a text count code points. */
const pointsOf = (text: string): readonly string[] => (hasSurrogates(text) ? Array.from(text) : text.split(''));

const outOfRange = (at: bigint): CelFailure => new CelFailure(`index out of range: ${at}`);

function charAt(text: string, at: bigint): CelValue {
  const points = hasSurrogates(text) ? pointsOf(text) : text;
  if (at < 0n || at > BigInt(points.length)) return outOfRange(at);
  return points[Number(at)] ?? '';
}

/** The position in code points of a position in UTF-16 units. */
const pointIndex = (text: string, unitIndex: number): bigint =>
  BigInt(unitIndex <= 0 || !hasSurrogates(text) ? unitIndex : pointsOf(text.slice(0, unitIndex)).length);

const unitIndex = (text: string, at: bigint): number =>
  hasSurrogates(text) ? pointsOf(text).slice(0, Number(at)).join('').length : Number(at);

function indexOf(text: string, part: string, from = 0n): CelValue {
  if (from < 0n || (from > 0n && from > BigInt(sizeOf(text)))) return outOfRange(from);
  if (part === '') return from;
  return pointIndex(text, text.indexOf(part, unitIndex(text, from)));
}

function lastIndexOf(text: string, part: string, from?: bigint): CelValue {
  const length = BigInt(sizeOf(text));
  if (from !== undefined && (from < 0n || from > length)) return outOfRange(from);
  if (part === '') return from ?? length;
  return pointIndex(text, text.lastIndexOf(part, from === undefined ? text.length : unitIndex(text, from)));
}

function substring(text: string, start: bigint, end?: bigint): CelValue {
  const points = pointsOf(text);
  const length = BigInt(points.length);
  if (start < 0n || start > length) return outOfRange(start);
  const last = end ?? length;
  if (last < 0n || last > length) return outOfRange(last);
  if (start > last) return new CelFailure(`invalid substring range. start: ${start}, end: ${last}`);
  return points.slice(Number(start), Number(last)).join('');
}

function replace(text: string, from: string, to: string, countMax = -1n): CelValue {
  if (countMax === 0n) return text;
  const parts = from === '' ? ['', ...pointsOf(text), ''] : text.split(from);
  if (countMax < 0n || BigInt(parts.length - 1) <= countMax) return parts.join(to);
  const count = Number(countMax);
  return [...parts.slice(0, count), parts.slice(count).join(from)].join(to);
}

function split(text: string, separator: string, countMax = -1n): CelValue {
  if (countMax === 0n) return [];
  const parts = separator === '' ? pointsOf(text) : text.split(separator);
  if (countMax < 0n || BigInt(parts.length) <= countMax) return parts;
  const count = Number(countMax) - 1;
  return [...parts.slice(0, count), parts.slice(count).join(separator)];
}

function join(list: readonly CelValue[], separator = ''): CelValue {
  let length = 0;
  for (const item of list) {
    if (typeof item !== 'string') return new CelFailure('no such overload');
    length += item.length + separator.length;
    if (length > TEXT_LENGTH_MAX) return TOO_LONG;
  }
  return list.join(separator);
}

/** Replacing texts could make one far larger than what its cost charges. */
function boundedReplace(text: string, from: string, to: string, countMax = -1n): CelValue {
  const count = from === '' ? text.length + 1 : Math.floor(text.length / from.length);
  if (count * to.length + text.length > TEXT_LENGTH_MAX && to.length > from.length) {
    return TOO_LONG;
  }
  return replace(text, from, to, countMax);
}

const ascii = (pattern: RegExp, change: (letters: string) => string) => (text: string) => text.replace(pattern, change);

/** What Go's unicode.IsSpace accepts. */
const SPACE = /[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

/** A pattern for spaces at the end would begin again at each space before it. */
function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && SPACE.test(text.charAt(start))) start += 1;
  while (start < end && SPACE.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

const readsResultTwice = (_: readonly CelValue[], result: CelValue): number => traversal(result, 2);

/** Also the values that are written: cel-go charges the format alone. */
const formatCost = ([text = '']: readonly CelValue[], result: CelValue): number =>
  traversal(text) + traversal(result, 10);

const strings: readonly Declaration[] = [
  declare('.charAt', 'string,int -> string', charAt),
  declare('.indexOf', 'string,string -> int', indexOf, readsFirst),
  declare('.indexOf', 'string,string,int -> int', indexOf, readsFirst),
  declare('.lastIndexOf', 'string,string -> int', lastIndexOf, readsFirst),
  declare('.lastIndexOf', 'string,string,int -> int', lastIndexOf, readsFirst),
  declare(
    '.lowerAscii',
    'string -> string',
    ascii(/[A-Z]+/g, (each) => each.toLowerCase()),
    readsFirst,
  ),
  declare(
    '.upperAscii',
    'string -> string',
    ascii(/[a-z]+/g, (each) => each.toUpperCase()),
    readsFirst,
  ),
  declare('.replace', 'string,string,string -> string', boundedReplace, readsFirstTwice),
  declare('.replace', 'string,string,string,int -> string', boundedReplace, readsFirstTwice),
  declare('.split', 'string,string -> list<string>', split, readsFirstTwice),
  declare('.split', 'string,string,int -> list<string>', split, readsFirstTwice),
  declare('.substring', 'string,int -> string', substring, readsFirst),
  declare('.substring', 'string,int,int -> string', substring, readsFirst),
  declare('.trim', 'string -> string', trimmed, readsFirst),
  declare('.join', 'list<string> -> string', join, readsResultTwice),
  declare('.join', 'list<string>,string -> string', join, readsResultTwice),
  declare('strings.quote', 'string -> string', quoted, readsFirst),
  declare('.format', 'string,list<dyn> -> string', formatText, formatCost),
];

const containsAll = (one: readonly CelValue[], other: readonly CelValue[]): boolean =>
  other.every((item) => one.some((each) => celEqual(each, item)));

const product = ([one = '', other = '']: readonly CelValue[]): number => sizeOf(one) * sizeOf(other);

const sets: readonly Declaration[] = [
  declare('sets.contains', 'list<A>,list<A> -> bool', containsAll, product),
  declare(
    'sets.equivalent',
    'list<A>,list<A> -> bool',
    (one: readonly CelValue[], other: readonly CelValue[]) => containsAll(one, other) && containsAll(other, one),
    (args) => 2 * product(args),
  ),
  declare(
    'sets.intersects',
    'list<A>,list<A> -> bool',
    (one: readonly CelValue[], other: readonly CelValue[]) =>
      one.some((item) => other.some((each) => celEqual(each, item))),
    product,
  ),
];

function slice(list: readonly CelValue[], start: bigint, end: bigint): CelValue {
  if (start < 0n || end < 0n) {
    return new CelFailure(`cannot slice(${start}, ${end}), negative indexes not supported`);
  }
  if (start > end)
    return new CelFailure(`cannot slice(${start}, ${end}), start index must be less than or equal to end index`);
  if (end > BigInt(list.length)) return new CelFailure(`cannot slice(${start}, ${end}), list is length ${list.length}`);
  return list.slice(Number(start), Number(end));
}

function flatten(list: readonly CelValue[], depth = 1n): CelValue {
  if (depth < 0n) return new CelFailure('level must be non-negative');
  return (list as readonly unknown[]).flat(Number(depth > 100n ? 100n : depth) as 1) as CelValue[];
}

function distinct(list: readonly CelValue[]): CelValue {
  const kept: CelValue[] = [];
  for (const item of list) if (!kept.some((each) => celEqual(each, item))) kept.push(item);
  return kept;
}

function sort(list: readonly CelValue[]): CelValue {
  for (const item of list) {
    if (typeof celCompare(item, list[0] as CelValue) === 'string') {
      return new CelFailure('list elements must have the same type');
    }
  }
  return [...list].sort((one, other) => {
    const sign = celCompare(one, other);
    return typeof sign === 'number' ? sign : 0;
  });
}

/** Numbers of a range. */
const RANGE_MAX = 100_000n;

function range(count: bigint): CelValue {
  if (count > RANGE_MAX) return new CelFailure(`lists.range(${count}) exceeds ${RANGE_MAX} items`);
  return Array.from({ length: Math.max(0, Number(count)) }, (_, i) => BigInt(i));
}

const squared = ([list = '']: readonly CelValue[]): number => sizeOf(list) ** 2;
const size = ([list = '']: readonly CelValue[]): number => sizeOf(list);
const resultSize = (_: readonly CelValue[], result: CelValue): number => 1 + sizeOf(result);

const lists: readonly Declaration[] = [
  declare('.slice', 'list<A>,int,int -> list<A>', slice, resultSize),
  declare('.flatten', 'list<list<A>> -> list<A>', flatten, resultSize),
  declare('.flatten', 'list<dyn>,int -> list<dyn>', flatten, resultSize),
  declare('.distinct', 'list<A> -> list<A>', distinct, squared),
  declare('.reverse', 'list<A> -> list<A>', (list: readonly CelValue[]) => [...list].reverse(), size),
  declare('.sort', 'list<A> -> list<A>', sort, squared),
  declare('.first', 'list<A> -> optional<A>', (list: readonly CelValue[]) => new CelOptional(list[0])),
  declare('.last', 'list<A> -> optional<A>', (list: readonly CelValue[]) => new CelOptional(list.at(-1))),
  declare('lists.range', 'int -> list<int>', range, resultSize),
];

/** Zero values of CEL, for `optional.ofNonZeroValue`. */
function isZero(value: CelValue): boolean {
  if (value === null || value === false || value === '') return true;
  const number = numberOf(value);
  if (number !== undefined) return Number(number) === 0;
  if (isList(value) || value instanceof Uint8Array) return value.length === 0;
  if (value instanceof CelOptional) return value.value === undefined;
  return value instanceof CelMap
    ? value.size === 0
    : 'nanos' in Object(value) && (value as { nanos: bigint }).nanos === 0n;
}

const optionals: readonly Declaration[] = [
  declare('optional.of', 'A -> optional<A>', (value: CelValue) => new CelOptional(value)),
  declare('optional.none', '-> optional<A>', () => NONE),
  declare('optional.ofNonZeroValue', 'A -> optional<A>', (value: CelValue) =>
    isZero(value) ? NONE : new CelOptional(value),
  ),
  declare('.hasValue', 'optional<A> -> bool', ({ value }: CelOptional) => value !== undefined),
  declare('.value', 'optional<A> -> A', ({ value }: CelOptional) =>
    value === undefined ? new CelFailure('optional.none() dereference') : value,
  ),
  declare('.or', 'optional<A>,optional<A> -> optional<A>', (one: CelOptional, other: CelOptional) =>
    one.value === undefined ? other : one,
  ),
  declare('.orValue', 'optional<A>,A -> A', ({ value }: CelOptional, other: CelValue) =>
    value === undefined ? other : value,
  ),
  declare('optional.unwrap', 'list<optional<A>> -> list<A>', unwrap),
  declare('.unwrapOpt', 'list<optional<A>> -> list<A>', unwrap),
];

function unwrap(list: readonly CelValue[]): CelValue {
  return list.flatMap((item) => (item instanceof CelOptional && item.value !== undefined ? [item.value] : []));
}

export const extensionFunctions: readonly Declaration[] = [...strings, ...sets, ...lists, ...optionals];
