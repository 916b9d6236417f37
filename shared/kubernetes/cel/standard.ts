/** The standard functions and operators of cel-spec (doc/langdef.md, "List of Standard Definitions"). */

import { type Declaration, declare, matchCost, readsFirst, traversal } from './functions.ts';
import { matchesPattern } from './patterns.ts';
import {
  CelDuration,
  CelFailure,
  type CelMap,
  CelTimestamp,
  CelTypeName,
  CelUint,
  type CelValue,
  celCompare,
  celEqual,
  joinLists,
  sizeOf,
  typeNameOf,
} from './values.ts';

const OVERFLOW = new CelFailure('integer overflow');
const UINT_OVERFLOW = new CelFailure('unsigned integer overflow');

const asInt = (value: bigint): CelValue => (value === BigInt.asIntN(64, value) ? value : OVERFLOW);
const asUint = (value: bigint): CelValue => (value === BigInt.asUintN(64, value) ? new CelUint(value) : UINT_OVERFLOW);

/** Sums that double again and again must not exhaust the memory. cel-go joins lists without copying them. */
export const TEXT_LENGTH_MAX = 1_000_000;
const LIST_LENGTH_MAX = 100_000;
export const TOO_LONG = new CelFailure('the result is too long');

type Arithmetic = (one: bigint, other: bigint) => bigint;

/** An operator on int, uint and double. */
function arithmetic(name: string, exact: Arithmetic, inexact: (one: number, other: number) => number): Declaration[] {
  return [...integers(name, exact), declare(name, 'double,double -> double', inexact)];
}

function integers(name: string, exact: Arithmetic, zero?: string): Declaration[] {
  const guarded = (other: bigint, result: () => CelValue): CelValue =>
    zero !== undefined && other === 0n ? new CelFailure(zero) : result();
  return [
    declare(name, 'int,int -> int', (one: bigint, other: bigint) => guarded(other, () => asInt(exact(one, other)))),
    declare(name, 'uint,uint -> uint', (one: CelUint, other: CelUint) =>
      guarded(other.value, () => asUint(exact(one.value, other.value))),
    ),
  ];
}

/** 0001-01-01 and the end of 9999, in nanoseconds. */
const TIME_MIN = -62_135_596_800n * 1_000_000_000n;
const TIME_END = 253_402_300_800n * 1_000_000_000n;

export const asTimestamp = (nanos: bigint): CelValue =>
  nanos >= TIME_MIN && nanos < TIME_END ? new CelTimestamp(nanos) : new CelFailure('timestamp overflow');
export const asDuration = (nanos: bigint): CelValue =>
  nanos === BigInt.asIntN(64, nanos) ? new CelDuration(nanos) : new CelFailure('duration overflow');

const addition: readonly Declaration[] = [
  ...arithmetic(
    '_+_',
    (one, other) => one + other,
    (one, other) => one + other,
  ),
  declare(
    '_+_',
    'string,string -> string',
    (one: string, other: string) => (one.length + other.length > TEXT_LENGTH_MAX ? TOO_LONG : one + other),
    ([one = '', other = '']) => Math.ceil((sizeOf(one) + sizeOf(other)) * 0.1),
  ),
  declare(
    '_+_',
    'bytes,bytes -> bytes',
    (one: Uint8Array, other: Uint8Array) => Buffer.concat([one, other]),
    ([one = '', other = '']) => Math.ceil((sizeOf(one) + sizeOf(other)) * 0.1),
  ),
  declare(
    '_+_',
    'list<A>,list<A> -> list<A>',
    (one: readonly CelValue[], other: readonly CelValue[]) =>
      one.length + other.length > LIST_LENGTH_MAX ? TOO_LONG : joinLists(one, other),
    ([one = '', other = '']) => Math.max(1, Math.ceil((sizeOf(one) + sizeOf(other)) * 0.1)),
  ),
  declare('_+_', `${'google.protobuf.Timestamp'},google.protobuf.Duration -> google.protobuf.Timestamp`, plusTime),
  declare(
    '_+_',
    'google.protobuf.Duration,google.protobuf.Timestamp -> google.protobuf.Timestamp',
    (one: CelDuration, other: CelTimestamp) => plusTime(other, one),
  ),
  declare(
    '_+_',
    'google.protobuf.Duration,google.protobuf.Duration -> google.protobuf.Duration',
    (one: CelDuration, other: CelDuration) => asDuration(one.nanos + other.nanos),
  ),
];

function plusTime(time: CelTimestamp, duration: CelDuration): CelValue {
  return asTimestamp(time.nanos + duration.nanos);
}

const subtraction: readonly Declaration[] = [
  ...arithmetic(
    '_-_',
    (one, other) => one - other,
    (one, other) => one - other,
  ),
  declare(
    '_-_',
    'google.protobuf.Timestamp,google.protobuf.Timestamp -> google.protobuf.Duration',
    (one: CelTimestamp, other: CelTimestamp) => asDuration(one.nanos - other.nanos),
  ),
  declare(
    '_-_',
    'google.protobuf.Timestamp,google.protobuf.Duration -> google.protobuf.Timestamp',
    (one: CelTimestamp, other: CelDuration) => asTimestamp(one.nanos - other.nanos),
  ),
  declare(
    '_-_',
    'google.protobuf.Duration,google.protobuf.Duration -> google.protobuf.Duration',
    (one: CelDuration, other: CelDuration) => asDuration(one.nanos - other.nanos),
  ),
];

const otherArithmetic: readonly Declaration[] = [
  ...arithmetic(
    '_*_',
    (one, other) => one * other,
    (one, other) => one * other,
  ),
  ...integers('_/_', (one, other) => one / other, 'division by zero'),
  declare('_/_', 'double,double -> double', (one: number, other: number) => one / other),
  ...integers('_%_', (one, other) => one % other, 'modulus by zero'),
  declare('-_', 'int -> int', (value: bigint) => asInt(-value)),
  declare('-_', 'double -> double', (value: number) => -value),
  declare('!_', 'bool -> bool', (value: boolean) => !value),
];

/** Reads the shorter one of two texts. */
const readsShorter = ([one = '', other = '']: readonly CelValue[]): number =>
  Math.ceil(Math.min(sizeOf(one), sizeOf(other)) * 0.1);

const equality: readonly Declaration[] = [
  declare('_==_', 'A,A -> bool', celEqual, readsShorter),
  declare('_!=_', 'A,A -> bool', (one: CelValue, other: CelValue) => !celEqual(one, other), readsShorter),
  declare(
    '@in',
    'A,list<A> -> bool',
    (item: CelValue, list: readonly CelValue[]) => list.some((each) => celEqual(item, each)),
    ([, list = '']) => sizeOf(list),
  ),
  declare('@in', 'A,map<A,B> -> bool', (key: CelValue, map: CelMap) => map.get(key) !== undefined),
];

const NUMBERS = ['int', 'uint', 'double'] as const;
const ORDERED = ['string', 'bool', 'bytes', 'google.protobuf.Timestamp', 'google.protobuf.Duration'] as const;

const order: readonly Declaration[] = (
  [
    ['_<_', (sign: number) => sign < 0],
    ['_<=_', (sign: number) => sign <= 0],
    ['_>_', (sign: number) => sign > 0],
    ['_>=_', (sign: number) => sign >= 0],
  ] as const
).flatMap(([name, holds]) => {
  const compare = (one: CelValue, other: CelValue): CelValue => {
    const sign = celCompare(one, other);
    return typeof sign === 'number' && holds(sign);
  };
  const pairs = [
    ...NUMBERS.flatMap((one) => NUMBERS.map((other) => [one, other] as const)),
    ...ORDERED.map((type) => [type, type] as const),
  ];
  return pairs.map(([one, other]) =>
    declare(name, `${one},${other} -> bool`, compare, one === 'string' || one === 'bytes' ? readsShorter : undefined),
  );
});

const intSize = (value: CelValue): bigint => BigInt(sizeOf(value));

const sizes: readonly Declaration[] = ['string', 'bytes', 'list<A>', 'map<A,B>'].flatMap((type) => [
  declare('size', `${type} -> int`, intSize),
  declare('.size', `${type} -> int`, intSize),
]);

const conversionFailure = (from: string, to: string): CelFailure =>
  new CelFailure(`type conversion error from '${from}' to '${to}'`);

const INT_END = 2 ** 63;
const UINT_END = 2 ** 64;

function intFromText(text: string): CelValue {
  return /^[+-]?\d{1,19}$/.test(text) ? asInt(BigInt(text.replace('+', ''))) : conversionFailure('string', 'int');
}

function uintFromText(text: string): CelValue {
  return /^\d{1,20}$/.test(text) ? asUint(BigInt(text)) : conversionFailure('string', 'uint');
}

const DOUBLE_TEXT = /^[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|inf|infinity|nan)$/i;

function doubleFromText(text: string): CelValue {
  if (!DOUBLE_TEXT.test(text)) return conversionFailure('string', 'double');
  if (/nan/i.test(text)) return Number.NaN;
  if (/inf/i.test(text)) return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return Number(text);
}

/** A double as Go prints it with %g: an exponent of two digits, below 1e-4 and from 1e21 on. */
export function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Object.is(value, -0)) return '-0';
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 21) {
    return power < 0 ? value.toFixed(Math.min(100, -power + mantissa.replace(/^-?\d\.?/, '').length)) : String(value);
  }
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}

const TRUE_TEXTS = ['1', 't', 'T', 'TRUE', 'true', 'True'];
const FALSE_TEXTS = ['0', 'f', 'F', 'FALSE', 'false', 'False'];

function boolFromText(text: string): CelValue {
  if (TRUE_TEXTS.includes(text)) return true;
  return FALSE_TEXTS.includes(text) ? false : conversionFailure('string', 'bool');
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textFromBytes(bytes: Uint8Array): CelValue {
  try {
    return decoder.decode(bytes);
  } catch {
    return new CelFailure('invalid UTF-8 in bytes, cannot convert to string');
  }
}

const same = (value: CelValue): CelValue => value;

const conversions: readonly Declaration[] = [
  declare('type', 'A -> type<A>', (value: CelValue) => new CelTypeName(typeNameOf(value))),
  declare('dyn', 'A -> dyn', same),
  declare('bool', 'bool -> bool', same),
  declare('bool', 'string -> bool', boolFromText),
  declare('bytes', 'bytes -> bytes', same),
  declare('bytes', 'string -> bytes', (text: string) => Buffer.from(text), readsFirst),
  declare('double', 'double -> double', same),
  declare('double', 'int -> double', (value: bigint) => Number(value)),
  declare('double', 'uint -> double', ({ value }: CelUint) => Number(value)),
  declare('double', 'string -> double', doubleFromText),
  declare('int', 'int -> int', same),
  declare('int', 'uint -> int', ({ value }: CelUint) => asInt(value)),
  declare('int', 'double -> int', (value: number) =>
    value > -INT_END && value < INT_END ? asInt(BigInt(Math.trunc(value))) : OVERFLOW,
  ),
  declare('int', 'string -> int', intFromText),
  declare('int', 'google.protobuf.Timestamp -> int', ({ nanos }: CelTimestamp) => floorDiv(nanos, 1_000_000_000n)),
  declare('int', 'google.protobuf.Duration -> int', ({ nanos }: CelDuration) => nanos),
  declare('uint', 'uint -> uint', same),
  declare('uint', 'int -> uint', (value: bigint) => asUint(value)),
  declare('uint', 'double -> uint', (value: number) =>
    value >= 0 && value < UINT_END ? asUint(BigInt(Math.trunc(value))) : UINT_OVERFLOW,
  ),
  declare('uint', 'string -> uint', uintFromText),
  declare('string', 'string -> string', same),
  declare('string', 'bool -> string', String),
  declare('string', 'int -> string', String),
  declare('string', 'uint -> string', ({ value }: CelUint) => String(value)),
  declare('string', 'double -> string', doubleText),
  declare('string', 'bytes -> string', textFromBytes, readsFirst),
];

const texts: readonly Declaration[] = [
  declare('.startsWith', 'string,string -> bool', (text: string, part: string) => text.startsWith(part), readsFirst),
  declare('.endsWith', 'string,string -> bool', (text: string, part: string) => text.endsWith(part), readsFirst),
  declare(
    '.contains',
    'string,string -> bool',
    (text: string, part: string) => text.includes(part),
    ([text = '', part = '']) => traversal(text) * traversal(part),
  ),
  declare('.matches', 'string,string -> bool', matchesPattern, matchCost),
  declare('matches', 'string,string -> bool', matchesPattern, matchCost),
];

export const floorDiv = (value: bigint, by: bigint): bigint =>
  value >= 0n || value % by === 0n ? value / by : value / by - 1n;

export const standardFunctions: readonly Declaration[] = [
  ...addition,
  ...subtraction,
  ...otherArithmetic,
  ...equality,
  ...order,
  ...sizes,
  ...conversions,
  ...texts,
];
